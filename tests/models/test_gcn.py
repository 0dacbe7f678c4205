import torch
from torch.testing import assert_close

from cagat.models import GCN


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
