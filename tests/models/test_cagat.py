import pytest
import torch
from torch.testing import assert_close

from cagat import CaGAT, CSRGraph
from cagat.nn import SparseFeatures


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    x = torch.randn(40, 6) * (torch.rand(40, 6) < 0.5)
    return x, torch.randint(0, 40, (2, 120))


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_any_depth(inputs, num_layers):
    model = CaGAT(6, 3, num_layers, 5, heads=2)
    assert model(*inputs).shape == (40, 5)
    assert len(model.convs) == num_layers


def test_the_papers_network():
    model = CaGAT(1433, 8, 2, 7)
    first, last = model.convs
    assert (first.heads, first.out_channels, first.concat, first.dropout) == (8, 8, True, 0.6)
    assert (last.heads, last.out_channels, last.concat, last.in_channels) == (1, 7, False, 64)
    assert (first.K, first.T, first.alpha, first.lam, first.xi) == (3, 2, 0.4, 0.3, 1e-3)


def test_propagation_in_the_last_layer_only(inputs):
    x, edge_index = inputs
    model = CaGAT(6, 3, 3, 5, heads=2, T=1, K=1, xi=0.0, lam=0.9, propagation="last").eval()
    assert [conv.lam for conv in model.convs] == [0.0, 0.0, 0.9]
    assert torch.equal(model.embed(x, edge_index), model.embed(x, edge_index[:, :7]))
    assert not torch.equal(model(x, edge_index), model(x, edge_index[:, :7]))
    # S reaches three hops, and the degrees of the nodes there depend on one hop more.
    assert model.reach() == 4
    with pytest.raises(ValueError, match="propagation must be one of all, last, but is 'first'"):
        CaGAT(6, 3, 3, 5, propagation="first")


def test_sparse_features_give_the_same(inputs):
    x, edge_index = inputs
    model = CaGAT(6, 3, 2, 5, heads=2).eval()
    expected = model(x, edge_index)
    assert_close(model(x.to_sparse_csr(), edge_index), expected)
    assert_close(model(SparseFeatures.from_tensor(x.to_sparse_csr()), edge_index), expected)


def test_training_is_random_and_evaluation_is_not(inputs):
    model = CaGAT(6, 3, 2, 5, heads=2)
    assert not torch.equal(model.train()(*inputs), model(*inputs))
    assert torch.equal(model.eval()(*inputs), model(*inputs))


def test_attention_of_every_layer(inputs):
    x, edge_index = inputs
    model = CaGAT(6, 3, 3, 5, heads=2).train()
    rows = model.attention(x, edge_index, nodes=[1, 2])
    assert model.training
    model.convs[0].eval()
    model.attention(x, edge_index, nodes=[1])
    assert [module.training for module in model.convs] == [False, True, True]
    assert [layer.S.shape for layer in rows] == [(2, 2, 40), (2, 2, 40), (2, 1, 40)]
    model.eval()
    hidden = torch.nn.functional.elu(model.convs[0](x, edge_index))
    second = model.convs[1].attention(hidden, edge_index, nodes=[1, 2])
    assert_close(rows[1].S, second.S)


def test_compiles_as_one_graph_with_a_prepared_graph(inputs):
    x, edge_index = inputs
    graph = CSRGraph.from_edge_index(edge_index, 40)
    model = CaGAT(6, 3, 2, 5, heads=2, dropout=0, attention_dropout=0)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    expected = torch.autograd.grad(model(x, graph).square().sum(), list(model.parameters()))
    assert_close(torch.autograd.grad(compiled(x, graph).square().sum(), list(model.parameters())), expected)


def test_weights_pass_to_every_layer(inputs):
    x, edge_index = inputs
    model = CaGAT(6, 3, 2, 5, heads=2).eval()
    assert not torch.allclose(model(x, edge_index, torch.rand(120)), model(x, edge_index))


def test_reset_draws_anew(inputs):
    model = CaGAT(6, 3, 2, 5, heads=2).eval()
    before = model(*inputs)
    model.reset_parameters()
    assert not torch.allclose(model(*inputs), before)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"num_layers": 0}, "at least 1, but is 0"), ({"dropout": 2}, "but is 2")]
)
def test_refuses_what_makes_no_network(arguments, message):
    with pytest.raises(ValueError, match=message):
        CaGAT(**{"in_channels": 6, "hidden_channels": 3, "num_layers": 2, "out_channels": 5} | arguments)
