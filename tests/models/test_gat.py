import torch
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GATv2Conv

from cagat.models import GAT, GATv2


def test_is_two_of_pygs_layers():
    torch.manual_seed(0)
    model = GAT(6, 3, 4, heads=3, dropout=0.0, attention_dropout=0.0).double()
    x, edge_index = torch.randn(40, 6).double(), torch.randint(0, 40, (2, 120)).unique(dim=1)
    first, second = GATConv(6, 3, heads=3).double(), GATConv(9, 4, concat=False).double()
    first.load_state_dict(model.conv1.state_dict())
    second.load_state_dict(model.conv2.state_dict())
    theirs = second(torch.nn.functional.elu(first(x, edge_index)), edge_index)
    for features in (x, x.to_sparse()):
        ours = model(features, edge_index)
        assert_close(ours, theirs)
        for parameter, their in zip(model.parameters(), (*first.parameters(), *second.parameters()), strict=True):
            gradients = (
                torch.autograd.grad(y.square().sum(), p, retain_graph=True)
                for y, p in ((ours, parameter), (theirs, their))
            )
            assert_close(*gradients)


def test_starts_as_pygs_layers_do():
    torch.manual_seed(0)
    model = GAT(6, 3, 5, heads=2)
    torch.manual_seed(0)
    theirs = GATConv(6, 3, heads=2), GATConv(6, 5, concat=False)
    for ours, their in zip((model.conv1, model.conv2), theirs, strict=True):
        assert_close(dict(ours.state_dict()), dict(their.state_dict()))


def test_biases_decay_if_they_should():
    model = GAT(6, 3, 5)
    (everything,) = model.parameter_groups(0.1)
    assert len(everything["params"]) == len(list(model.parameters()))
    decaying, biases = GAT(6, 3, 5, decay_biases=False).parameter_groups(0.1)
    assert (decaying["weight_decay"], biases["weight_decay"]) == (0.1, 0)
    assert len(decaying["params"]) == 6  # Of each layer the weights and both attention vectors.
    assert all(bias.dim() == 1 for bias in biases["params"])
    assert len(biases["params"]) == 2


def test_v2_is_two_of_pygs_layers():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40))
    model = GATv2(5, 4, 3, heads=2).eval()
    first, second = GATv2Conv(5, 4, heads=2).eval(), GATv2Conv(8, 3, concat=False).eval()
    first.load_state_dict(model.conv1.state_dict())
    second.load_state_dict(model.conv2.state_dict())
    hidden = torch.nn.functional.elu(first(x, edge_index))
    assert_close(model.embed(x, edge_index), hidden)
    assert_close(model(x, edge_index), second(hidden, edge_index))
    assert model.conv1.dropout == model.conv2.dropout == 0.6


def test_attention_may_have_a_weight_decay_of_its_own():
    model = GAT(6, 3, 5, attention_weight_decay=0.7)
    rest, attention = model.parameter_groups(0.1)
    assert (rest["weight_decay"], attention["weight_decay"]) == (0.1, 0.7)
    expected = [one for conv in (model.conv1, model.conv2) for one in (conv.att_src, conv.att_dst)]
    assert {id(one) for one in attention["params"]} == {id(one) for one in expected}
    assert len(rest["params"]) + len(attention["params"]) == len(list(model.parameters()))
