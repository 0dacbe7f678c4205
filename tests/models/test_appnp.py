import torch
from torch.testing import assert_close
from torch_geometric import nn as pyg

from cagat.models import APPNP


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
