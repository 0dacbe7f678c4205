import pytest
import torch
from torch.testing import assert_close
from torch_geometric import nn as pyg

from cagat.kernels import CSRGraph
from cagat.models import APPNP, SGC, appnp
from cagat.models.appnp import PersonalizedPageRank


@pytest.fixture
def graph():
    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 90)).unique(dim=1)
    return torch.randn(30, 4), edges, torch.rand(edges.size(1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("K", "alpha"), [(0, 0.1), (1, 0.0), (10, 0.1)])
def test_is_pygs_propagation(graph, K, alpha, weighted):
    z, edge_index, weight = graph
    weight = weight if weighted else None
    assert_close(PersonalizedPageRank(K, alpha)(z, edge_index, weight), pyg.APPNP(K, alpha)(z, edge_index, weight))
    ours = PersonalizedPageRank(K, alpha, dropout=0.5).eval()
    assert_close(ours(z, edge_index, weight), pyg.APPNP(K, alpha)(z, edge_index, weight))


def test_every_step_drops_from_the_whole_matrix():
    # On a node with nothing but its self-loop, the result is the product of what the steps left of a weight of 1. If
    # a step dropped from what is left over from the one before, all steps would live or die together.
    no_edges = torch.empty(2, 0, dtype=torch.long)
    steps = PersonalizedPageRank(2, alpha=0.0, dropout=0.5).train()
    torch.manual_seed(0)
    found = steps(torch.ones(20_000, 1), no_edges)
    assert set(found.unique().tolist()) == {0.0, 4.0}
    assert (found > 0).double().mean().item() == pytest.approx(1 / 4, abs=0.01)
    assert found.mean().item() == pytest.approx(1, abs=0.05)


def test_dropout_has_a_gradient(graph):
    z, edge_index, _ = graph
    prepared = CSRGraph.from_edge_index(edge_index, 30, dtype=torch.float64)
    steps = PersonalizedPageRank(3, 0.1, dropout=0.5)

    def propagate(z):
        torch.manual_seed(1)
        return steps(z, prepared)

    assert torch.autograd.gradcheck(propagate, z.double().requires_grad_())


@pytest.mark.parametrize("dropout", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("K", "channels", "dtype"),
    [
        (1, 3, torch.float64),
        (2, 1, torch.float32),
        (3, 64, torch.float32),
        (10, 180, torch.float32),  # Three parts, the last of which is padded.
    ],
)
def test_one_program_is_what_single_steps_are(graph, monkeypatch, K, channels, dropout, dtype):
    _, edge_index, weight = graph
    steps = PersonalizedPageRank(K, 0.1, dropout)
    # Every other column, since features need not be contiguous.
    z = torch.randn(30, 2 * channels, dtype=dtype)[:, ::2].requires_grad_()
    sent_back = torch.randn(30, channels, dtype=dtype)

    def found():
        torch.manual_seed(1)
        y = steps(z, edge_index, weight)
        (gradient,) = torch.autograd.grad(y, z, sent_back)
        return y.detach(), gradient, torch.rand(1)

    fused = found()
    monkeypatch.setattr(appnp, "can_be_compiled", lambda *_: False)
    assert_close(fused, found())


def test_the_gradient_can_be_differentiated(graph):
    z, edge_index, _ = graph
    prepared = CSRGraph.from_edge_index(edge_index, 30, dtype=torch.float64)
    steps = PersonalizedPageRank(3, 0.1, dropout=0.5)

    def propagate(z):
        torch.manual_seed(1)
        return steps(z, prepared).square()

    assert torch.autograd.gradgradcheck(propagate, z.double().requires_grad_())


def test_it_can_be_traced_and_stand_beside_transforms(graph):
    z, edge_index, _ = graph
    steps = PersonalizedPageRank(3, 0.1)
    expected = steps(z, edge_index)
    assert_close(torch.compile(steps, backend="aot_eager")(z, edge_index), expected)
    with torch.no_grad():
        scaled = torch.func.vmap(lambda factor: factor * steps(z, edge_index).sum())(torch.ones(2))
    assert_close(scaled, expected.sum().expand(2))


def test_predicts_then_propagates():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40)).unique(dim=1)
    model = APPNP(5, 4, 3, K=6, alpha=0.2).eval()
    hidden = (x @ model.lin1.weight.t()).relu()
    assert_close(model.embed(x, edge_index), hidden)
    assert_close(model(x, edge_index), pyg.APPNP(6, 0.2)(hidden @ model.lin2.weight.t(), edge_index))


def test_only_the_first_weights_decay():
    model = APPNP(5, 4, 3)
    decaying, rest = model.parameter_groups(0.1)
    assert decaying["params"][0] is model.lin1.weight
    assert rest["params"][0] is model.lin2.weight
    assert (decaying["weight_decay"], rest["weight_decay"]) == (0.1, 0)
    assert len(list(model.parameters())) == 2


def test_sgc_is_pygs_layer():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40)).unique(dim=1)
    weight = torch.rand(edge_index.size(1))
    for K in (0, 1, 3):
        ours, theirs = SGC(5, 3, K), pyg.SGConv(5, 3, K)
        ours.load_state_dict({"lin.weight": theirs.lin.weight, "bias": theirs.lin.bias})
        assert_close(ours(x, edge_index, weight), theirs(x, edge_index, weight))
        assert_close(ours(x.to_sparse_csr(), edge_index), theirs(x, edge_index))
        assert_close(ours.embed(x, edge_index) @ ours.lin.weight.t() + ours.bias, theirs(x, edge_index))
