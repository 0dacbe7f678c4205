import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from cagat import CSRGraph
from cagat.models.graph_convolution import GraphConvolution


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
