import pytest
import torch
from hypothesis import given, settings

from cagat import CSRGraph, reference
from cagat.kernels import CSRPattern
from graph_strategies import RandomGraph, graphs


def dense(graph: CSRGraph, values: torch.Tensor) -> torch.Tensor:
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=values.dtype)
    matrix[graph.pattern.rows(), graph.pattern.col.long()] = values
    return matrix


def test_keeps_the_callers_edges_and_adds_missing_loops_last():
    edge_index = torch.tensor([[2, 0, 1, 0], [0, 0, 2, 1]])
    graph = CSRGraph.from_edge_index(edge_index, 3)
    assert graph.edge_index.tolist() == [[2, 0, 1, 0, 1, 2], [0, 0, 2, 1, 1, 2]]
    assert graph.num_given == 4
    # Rows: 0 <- {0, 2}, 1 <- {0, 1}, 2 <- {1, 2}.
    assert graph.pattern.rowptr.tolist() == [0, 2, 4, 6]
    assert graph.pattern.col.tolist() == [0, 2, 0, 1, 1, 2]
    assert graph.entry.tolist() == [1, 0, 4, 2, 3, 5]


def test_transpose_and_permutation_by_hand():
    graph = CSRGraph.from_edge_index(torch.tensor([[1, 0, 2], [0, 2, 2]]), 3, add_self_loops=False)
    pattern = graph.pattern
    assert pattern.rowptr.tolist() == [0, 1, 1, 3]
    assert pattern.col.tolist() == [1, 0, 2]
    assert pattern.rowptr_t.tolist() == [0, 1, 2, 3]
    assert pattern.col_t.tolist() == [2, 0, 2]
    assert pattern.perm_t.tolist() == [1, 0, 2]


def test_a_duplicate_counts_once_without_weights_and_adds_up_with_them():
    edge_index = torch.tensor([[1, 1], [0, 0]])
    unweighted = CSRGraph.from_edge_index(edge_index, 2, add_self_loops=False)
    weighted = CSRGraph.from_edge_index(edge_index, 2, torch.tensor([2.0, 3.0]), add_self_loops=False)
    assert unweighted.adjacency.tolist() == [1]
    assert weighted.adjacency.tolist() == [5]
    assert weighted.entry.tolist() == [0, 0]


def test_merge_takes_the_mean_of_duplicates():
    graph = CSRGraph.from_edge_index(torch.tensor([[1, 0, 1], [0, 1, 0]]), 2, add_self_loops=False)
    assert graph.merge(torch.tensor([[1.0], [5.0], [3.0]])).tolist() == [[2], [5]]


@settings(max_examples=40)
@given(graphs())
def test_equals_the_dense_matrices(graph: RandomGraph):
    for add_self_loops in (True, False):
        made = CSRGraph.from_edge_index(*graph, add_self_loops=add_self_loops)
        A, edge = reference.dense_adjacency(*graph, add_self_loops=add_self_loops)
        assert torch.equal(dense(made, made.adjacency), A)
        assert torch.equal(dense(made, torch.ones(made.num_entries, dtype=torch.bool)), edge)
        for normalization in ("row", "sym"):
            values, values_t = made.transition(normalization, torch.float64)
            expected = reference.diffusion_matrix(A, normalization)
            torch.testing.assert_close(dense(made, values), expected, rtol=1e-14, atol=0)
            assert torch.equal(values[made.pattern.perm_t.long()], values_t)


def test_does_not_change_with_the_callers_tensors():
    edge_index, weight = torch.tensor([[0, 1], [1, 2]]), torch.ones(2, dtype=torch.float64)
    graph = CSRGraph.from_edge_index(edge_index, 3, weight, add_self_loops=False)
    edge_index.zero_()
    weight.zero_()
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert graph.adjacency.tolist() == [1, 1]


def test_holds_one_weight_for_all_and_makes_on_demand_what_passes_do_not_use():
    graph = CSRGraph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    assert graph.adjacency.untyped_storage().nbytes() == 8
    assert graph._prepared.results.keys() == {"local order", ("local", "row", torch.float32)}


def test_pattern_refuses_entries_outside_of_the_matrix():
    with pytest.raises(IndexError, match="row 2 of a matrix with 2 rows"):
        CSRPattern.from_sorted(torch.tensor([0, 2]), torch.tensor([0, 0]), 2, 2)
    with pytest.raises(IndexError, match="column -1 of a matrix with 2 columns"):
        CSRPattern.from_sorted(torch.tensor([0, 1]), torch.tensor([-1, 0]), 2, 2)


def test_graph_without_nodes():
    graph = CSRGraph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)
    assert (graph.num_nodes, graph.num_entries) == (0, 0)


def test_moves_between_devices_with_all_it_has():
    graph = CSRGraph.from_edge_index(torch.tensor([[0], [1]]), 2).to("meta")
    assert graph.device.type == "meta"
    assert graph.pattern.perm_t.is_meta
    assert all(value.is_meta for value in graph.transition("row", torch.get_default_dtype()))


@pytest.mark.parametrize(
    ("edge_index", "weight", "error", "message"),
    [
        (torch.zeros(3, 2, dtype=torch.long), None, ValueError, r"\(3, 2\)"),
        (torch.zeros(2, 1), None, TypeError, "float32"),
        (torch.tensor([[0], [5]]), None, IndexError, "node 5"),
        (torch.tensor([[-1], [0]]), None, IndexError, "node -1"),
        (torch.tensor([[0], [1]]), torch.ones(2), ValueError, r"\(2,\)"),
        (torch.tensor([[0], [1]]), torch.tensor([-1.0]), ValueError, r"edge 0 has -1\.0"),
        (torch.tensor([[0], [1]]), torch.tensor([float("nan")]), ValueError, "edge 0 has nan"),
        (torch.tensor([[0], [1]]), torch.ones(1, requires_grad=True), ValueError, "no gradient"),
    ],
)
def test_refuses_what_is_no_graph(edge_index, weight, error, message):
    with pytest.raises(error, match=message):
        CSRGraph.from_edge_index(edge_index, 3, weight)


def test_refuses_unknown_normalization():
    with pytest.raises(ValueError, match="row, sym"):
        CSRGraph.from_edge_index(torch.tensor([[0], [1]]), 2, normalization="column")
