import torch

from cagat.models import GraphSAGE


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
