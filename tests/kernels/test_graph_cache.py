import gc
import threading
import weakref

import pytest
import torch
from torch_geometric import EdgeIndex

from cagat.kernels import prepare_graph
from cagat.kernels.graph_cache import TensorCache


@pytest.fixture
def edge_index():
    return torch.tensor([[0, 1, 2], [1, 2, 0]])


def test_the_second_call_gives_the_same_graph(edge_index):
    assert prepare_graph(edge_index, 3) is prepare_graph(edge_index, 3)


def test_options_make_another_graph(edge_index):
    graph = prepare_graph(edge_index, 3)
    assert prepare_graph(edge_index, 4) is not graph
    assert prepare_graph(edge_index, 3, add_self_loops=False) is not graph


def test_a_change_in_place_is_noticed(edge_index):
    assert prepare_graph(edge_index, 3).pattern.col.tolist() == [0, 2, 0, 1, 1, 2]
    edge_index[0, 0] = 1
    assert prepare_graph(edge_index, 3).pattern.col.tolist() == [0, 2, 1, 1, 2]


def test_a_changed_weight_is_noticed(edge_index):
    weight = torch.ones(3)
    before = prepare_graph(edge_index, 3, weight)
    weight[0] = 5
    after = prepare_graph(edge_index, 3, weight)
    assert before.adjacency.max() == 1
    assert after.adjacency.max() == 5


def test_another_tensor_at_the_same_address_is_another_graph():
    columns = set()
    for source in range(50):
        edge_index = torch.tensor([[source], [0]])
        columns.add(tuple(prepare_graph(edge_index, 50, add_self_loops=False).pattern.col.tolist()))
        del edge_index
    assert len(columns) == 50


def test_inference_tensors_are_compared():
    with torch.inference_mode():
        edge_index = torch.tensor([[0], [1]])
        before = prepare_graph(edge_index, 3)
        assert prepare_graph(edge_index, 3) is before
        edge_index[0, 0] = 2
        after = prepare_graph(edge_index, 3)
    assert after.edge_index[0, 0] == 2


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_sparse_matrices_have_targets_as_rows_and_weights_as_values(layout):
    matrix = torch.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse(layout=layout)
    graph = prepare_graph(matrix, 2, add_self_loops=False)
    assert graph.edge_index.tolist() == [[1, 1], [0, 1]]
    assert graph.adjacency.tolist() == [2, 3]
    assert prepare_graph(matrix, 2, add_self_loops=False) is graph
    unweighted = prepare_graph(matrix, 2, add_self_loops=False, values_are_weights=False)
    assert unweighted.adjacency.tolist() == [1, 1]


def test_changed_values_of_a_sparse_matrix_are_noticed():
    matrix = torch.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
    prepare_graph(matrix, 2, add_self_loops=False)
    matrix.values().mul_(2)
    assert prepare_graph(matrix, 2, add_self_loops=False).adjacency.tolist() == [4, 6]


def test_sparse_matrix_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"\(2, 2\).*3 nodes"):
        prepare_graph(torch.eye(2).to_sparse_csr(), 3)


def test_edge_index_class_of_pyg(edge_index):
    wrapped = EdgeIndex(edge_index, sparse_size=(3, 3))
    graph = prepare_graph(wrapped, 3)
    assert graph.edge_index[:, :3].tolist() == edge_index.tolist()
    assert prepare_graph(wrapped, 3) is graph


def test_many_threads_may_prepare_at_once():
    tensors = [torch.randint(0, 30, (2, 200)) for _ in range(4)]
    expected = [prepare_graph(tensor.clone(), 30).pattern.col for tensor in tensors]
    failures = []

    def work():
        for _ in range(50):
            made = [prepare_graph(tensor, 30).pattern.col for tensor in tensors]
            failures.extend(col for col, right in zip(made, expected, strict=True) if not torch.equal(col, right))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("edges", "weight", "error", "message"),
    [
        ([[0], [1]], None, TypeError, r"edge_index must be a tensor, got a list"),
        (torch.zeros(2, 1, dtype=torch.long), [1.0], TypeError, r"edge_weight must be a tensor, got a list"),
        (torch.zeros(2, 1, dtype=torch.long), torch.ones(1).to_sparse(), TypeError, r"edge_weight\.to_dense\(\)"),
        (torch.zeros(2, 1, dtype=torch.long, device="meta"), None, ValueError, "has no data"),
        (torch.ones(2, 2, 3).to_sparse(), None, ValueError, r"3 dimensions of shape \(2, 2, 3\); pass"),
        (torch.eye(2).to_sparse(1), None, ValueError, r"1 dimensions of shape \(2, 2\); pass"),
    ],
)
def test_what_is_no_graph_is_refused_before_it_is_remembered(edges, weight, error, message):
    with pytest.raises(error, match=message):
        prepare_graph(edges, 2, weight)


def test_a_gradient_for_weights_in_a_sparse_matrix_is_refused():
    matrix = torch.eye(2).to_sparse_csr().requires_grad_()
    with pytest.raises(ValueError, match="no gradient"):
        prepare_graph(matrix, 2)


class Made:
    pass


def test_what_was_made_leaves_with_its_tensor():
    cache, tensor = TensorCache(), torch.ones(3)
    made = weakref.ref(cache.get((tensor,), (), Made))
    assert len(cache) == 1
    del tensor
    gc.collect()
    assert len(cache) == 0
    assert made() is None


def test_the_least_recently_used_leaves_first():
    cache, tensors = TensorCache(capacity=2), [torch.ones(1) for _ in range(3)]
    first = cache.get((tensors[0],), (), Made)
    second = cache.get((tensors[1],), (), Made)
    assert cache.get((tensors[0],), (), Made) is first
    cache.get((tensors[2],), (), Made)
    assert cache.get((tensors[0],), (), Made) is first
    assert cache.get((tensors[1],), (), Made) is not second


def test_a_tensor_changed_while_something_is_made_of_it_is_made_of_again():
    cache, tensor = TensorCache(), torch.ones(3)
    before = cache.get((tensor,), (), lambda: tensor.add_(1).clone())
    assert cache.get((tensor,), (), tensor.clone) is not before
