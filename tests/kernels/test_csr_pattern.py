import torch
from hypothesis import given, settings

from cagat import CSRGraph
from cagat.kernels import CSRPattern
from cagat.kernels.csr_pattern import LocalOrder
from graph_strategies import graphs

RING = [(0, 1), (1, 2), (2, 0)]


def pattern(entries: list[tuple[int, int]], rows: int = 3, cols: int = 3) -> CSRPattern:
    row, col = torch.tensor(sorted(entries)).t()
    return CSRPattern.from_sorted(row, col, rows, cols)


def test_an_undirected_graph_is_symmetric_and_its_transpose_takes_no_memory():
    made = pattern([*RING, *((j, i) for i, j in RING), (1, 1)])
    assert made.is_symmetric
    assert made.col_t is made.col
    assert made.rowptr_t is made.rowptr
    mirror = made.perm_t.long()
    assert torch.equal(made.rows()[mirror], made.col.long())
    assert torch.equal(made.col.long()[mirror], made.rows())
    assert made.to("cpu").is_symmetric


def test_a_directed_graph_is_not():
    made = pattern(RING)
    assert not made.is_symmetric
    assert not made.to("cpu").is_symmetric


def test_equal_degrees_are_not_enough():
    # Rows and columns have the same numbers of entries, at other places.
    assert not pattern([(0, 1), (1, 2), (2, 0), (0, 0)]).is_symmetric


def test_a_rectangle_is_not():
    assert not pattern([(0, 0), (0, 1)], rows=1, cols=2).is_symmetric


def dense(pattern, values):
    matrix = torch.zeros(pattern.num_rows, pattern.num_cols, dtype=values.dtype)
    matrix[pattern.rows(), pattern.col.long()] = values
    return matrix


@settings(max_examples=40)
@given(graphs())
def test_it_is_the_same_matrix_with_nodes_in_another_order(graph):
    made = CSRGraph.from_edge_index(*graph, dtype=torch.float64)
    order, weights = made.local_order(), made.local_transition("row", torch.float64)
    nodes = order.nodes.long()
    assert torch.equal(nodes.sort().values, torch.arange(graph.num_nodes))
    assert torch.equal(nodes[order.nodes_back], torch.arange(graph.num_nodes))
    old = dense(made.pattern, made.transition("row", torch.float64)[0])
    assert torch.equal(dense(order.pattern, weights[0]), old[nodes][:, nodes])
    assert torch.equal(weights[0][order.pattern.perm_t.long()], weights[1])


def test_neighbours_come_near():
    shuffled = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    path = torch.stack([shuffled[:-1], shuffled[1:]])
    made = CSRGraph.from_edge_index(torch.cat([path, path.flip(0)], dim=1), 500)
    pattern = LocalOrder.of(made.pattern).pattern
    assert (pattern.rows() - pattern.col).abs().max() <= 1
