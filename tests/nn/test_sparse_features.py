import pytest
import torch
from torch.testing import assert_close

from cagat import CaGAT, CSRGraph
from cagat.nn import SparseFeatures

DENSE = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_product_and_gradient(layout):
    features = SparseFeatures.from_tensor(DENSE.to_sparse(layout=layout))
    weight = torch.randn(3, 4, requires_grad=True)
    assert features.shape == (2, 3)
    assert_close(features.matmul(weight), DENSE @ weight)
    (gradient,) = torch.autograd.grad(features.matmul(weight).sum(), weight)
    assert_close(gradient, DENSE.t() @ torch.ones(2, 4))


def test_product_and_gradient_of_many_nodes():
    """Their gradient is summed in strips of nodes, each with weights of its own."""
    dense = torch.where(torch.rand(9001, 3) < 0.5, torch.randn(9001, 3), 0.0).double()
    features = SparseFeatures.from_tensor(dense.to_sparse())
    assert features._strips.num_cols == 9
    weight, other = torch.randn(3, 4, dtype=torch.double, requires_grad=True), torch.randn(9001, 4, dtype=torch.double)
    assert_close(features.matmul(weight), dense @ weight)
    (gradient,) = torch.autograd.grad(features.matmul(weight), weight, other)
    assert_close(gradient, dense.t() @ other)
    dropped = features.dropout(0.5, training=True)
    assert_close(dropped.matmul(weight), dropped.to_dense() @ weight)
    assert_close(features.rows(torch.tensor([9000, 1])).matmul(weight), dense[[9000, 1]] @ weight)


def test_weights_are_not_copied_where_they_are_more_than_the_features():
    nodes, columns = torch.arange(9000), torch.arange(9000) % 2000
    features = SparseFeatures.from_tensor(torch.sparse_coo_tensor(torch.stack([nodes, columns]), torch.ones(9000)))
    assert features._strips is features.pattern


def test_dropout_drops_values():
    torch.manual_seed(0)
    features = SparseFeatures.from_tensor((torch.rand(40, 6) < 0.5).float().to_sparse_csr())
    dropped = features.dropout(0.5, training=True)
    kept = dropped.values != 0
    assert 0 < kept.sum() < kept.numel()
    assert_close(dropped.values[kept], 2 * features.values[kept])
    assert torch.equal(features.dropout(0.5, training=False).values, features.values)


def test_the_second_call_costs_nothing_and_a_change_is_noticed():
    x = DENSE.to_sparse_csr()
    features = SparseFeatures.from_tensor(x)
    assert SparseFeatures.from_tensor(x) is features
    x.values().mul_(2)
    assert features.values.tolist() == [1, 2, 3]
    assert SparseFeatures.from_tensor(x).values.tolist() == [2, 4, 6]


def test_a_column_out_of_range_is_an_error():
    broken = torch.sparse_csr_tensor(
        torch.tensor([0, 1]), torch.tensor([7]), torch.ones(1), (1, 3), check_invariants=False
    )
    with pytest.raises(IndexError, match="column 7 of a matrix with 3 columns"):
        SparseFeatures.from_tensor(broken)


def test_a_gradient_for_sparse_features_is_refused():
    with pytest.raises(ValueError, match="to_dense"):
        SparseFeatures.from_tensor(DENSE.to_sparse_csr().requires_grad_())


def test_networks_compile_with_them():
    torch.manual_seed(0)
    features = SparseFeatures.from_tensor(DENSE.repeat(4, 1).to_sparse_csr())
    graph = CSRGraph.from_edge_index(torch.tensor([[0, 1, 5], [1, 2, 7]]), 8)
    model = CaGAT(3, 2, 1, 2).eval()
    assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(features, graph), model(features, graph))
    model.train()
    assert torch.compile(model, fullgraph=True, backend="aot_eager")(features, graph).shape == (8, 2)


def test_rows_of_some_nodes():
    dense = torch.randn(6, 5) * (torch.rand(6, 5) < 0.4)
    features, nodes = SparseFeatures.from_tensor(dense.to_sparse()), torch.tensor([4, 0, 5])
    assert torch.equal(features.rows(nodes).to_dense(), dense[nodes])
    torch.manual_seed(0)
    whole = features.dropout(0.5, True)
    torch.manual_seed(0)
    assert torch.equal(features.rows(nodes, share_dropout=True).dropout(0.5, True).to_dense(), whole.to_dense()[nodes])
    assert features.rows(nodes[:0]).shape == (0, 5)
