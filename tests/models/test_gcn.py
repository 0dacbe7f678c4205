import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import add_remaining_self_loops

from cagat import CSRGraph
from cagat.models import GCN, GraphSAGE
from cagat.models.gcn import GraphConvolution, MeanConvolution


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


def test_is_pygs_layer_with_the_node_among_its_neighbours(graph):
    x, edge_index, _ = graph
    ours, theirs = MeanConvolution(6, 4), SAGEConv(6, 4)
    ours.load_state_dict(theirs.state_dict())
    y = theirs(x, add_remaining_self_loops(edge_index, num_nodes=30)[0])
    expected = y / y.norm(dim=1, keepdim=True).clamp(min=1)
    assert (y.norm(dim=1) > 1).any()
    assert (y.norm(dim=1) < 1).any()
    assert_close(ours(x, edge_index), expected)
    assert_close(ours(x.to_sparse_csr(), edge_index), expected)


def test_both_products_take_the_same_dropped_features():
    layer = MeanConvolution(50, 50, dropout=0.5)
    torch.nn.init.eye_(layer.lin_l.weight)
    torch.nn.init.eye_(layer.lin_r.weight)
    no_edges = torch.empty(2, 0, dtype=torch.long)
    y = layer(0.01 * torch.ones(20, 50), no_edges)
    assert_close(y.unique(), torch.tensor([0.0, 0.04]))  # Twice 0.01, from the mean and from the node itself.


def test_logits_are_no_longer_than_1():
    torch.manual_seed(0)
    x, edge_index = 100 * torch.randn(20, 5), torch.randint(0, 20, (2, 40))
    model = GraphSAGE(5, 4, 3).eval()
    assert model.embed(x, edge_index).norm(dim=1).max() <= 1 + 1e-6
    assert model(x, edge_index).norm(dim=1).max() <= 1 + 1e-6


def test_both_weights_of_the_first_layer_decay():
    model = GraphSAGE(5, 4, 3)
    decaying, rest = model.parameter_groups(0.1)
    first = {id(model.conv1.lin_l.weight), id(model.conv1.lin_r.weight)}
    assert {id(parameter) for parameter in decaying["params"]} == first
    assert (len(rest["params"]), rest["weight_decay"]) == (4, 0)
