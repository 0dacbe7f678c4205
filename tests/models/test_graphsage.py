import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import add_remaining_self_loops

from cagat.models import GraphSAGE
from cagat.models.graphsage import MeanConvolution


@pytest.fixture
def graph():
    torch.manual_seed(0)
    return torch.randn(30, 6), torch.randint(0, 30, (2, 90)).unique(dim=1)


def test_is_pygs_layer_with_the_node_among_its_neighbours(graph):
    x, edge_index = graph
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
