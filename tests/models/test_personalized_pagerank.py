import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import APPNP

from cagat.kernels import CSRGraph
from cagat.models.personalized_pagerank import PersonalizedPageRank


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
    assert_close(PersonalizedPageRank(K, alpha)(z, edge_index, weight), APPNP(K, alpha)(z, edge_index, weight))
    ours = PersonalizedPageRank(K, alpha, dropout=0.5).eval()
    assert_close(ours(z, edge_index, weight), APPNP(K, alpha)(z, edge_index, weight))


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
