import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from cagat import CSRGraph
from cagat.models import GCN
from cagat.models.gcn import GraphConvolution


@pytest.fixture
def graph():
    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 90)).unique(dim=1)  # Directed, some self-loops among them.
    return torch.randn(30, 6), edges, torch.rand(edges.size(1))


@pytest.mark.parametrize("weighted", [False, True])
def test_is_pygs_layer(graph, weighted):
    x, edge_index, weight = graph
    weight = weight if weighted else None
    ours, theirs = GraphConvolution(6, 4), GCNConv(6, 4)
    torch.nn.init.normal_(theirs.bias)
    ours.load_state_dict(theirs.state_dict())
    expected = theirs(x, edge_index, weight)
    assert_close(ours(x, edge_index, weight), expected)
    assert_close(ours(x.to_sparse_csr(), edge_index, weight), expected)
    for parameter in ("lin.weight", "bias"):
        gradients = [
            torch.autograd.grad(layer(x, edge_index, weight).square().sum(), layer.get_parameter(parameter))[0]
            for layer in (ours, theirs)
        ]
        assert_close(*gradients)


def test_takes_a_prepared_graph(graph):
    x, edge_index, _ = graph
    layer = GraphConvolution(6, 4)
    assert_close(layer(x, CSRGraph.from_edge_index(edge_index, 30)), layer(x, edge_index))


def test_an_edge_given_twice_counts_once(graph):
    x, edge_index, _ = graph
    layer = GraphConvolution(6, 4)
    assert_close(layer(x, torch.cat([edge_index, edge_index], dim=1)), layer(x, edge_index))


def test_is_the_formula_of_the_paper():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40)).unique(dim=1)
    model = GCN(5, 4, 3).eval()
    A = torch.zeros(20, 20)
    A[edge_index[1], edge_index[0]] = 1
    A.fill_diagonal_(1)
    scale = A.sum(dim=1).rsqrt()
    P = scale[:, None] * A * scale
    W0, W1 = model.conv1.lin.weight.t(), model.conv2.lin.weight.t()
    hidden = (P @ x @ W0).relu()
    assert_close(model.embed(x, edge_index), hidden)
    assert_close(model(x, edge_index), P @ hidden @ W1)


def test_only_the_first_weights_decay():
    model = GCN(5, 4, 3)
    decaying, rest = model.parameter_groups(0.1)
    assert [id(parameter) for parameter in decaying["params"]] == [id(model.conv1.lin.weight)]
    assert (decaying["weight_decay"], rest["weight_decay"]) == (0.1, 0)
    assert len(rest["params"]) == 3
