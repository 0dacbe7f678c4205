import torch
from torch.testing import assert_close

from cagat.models import Labelled, LabelPropNL


def test_converges_to_the_closed_form():
    torch.manual_seed(0)
    edges = torch.randint(0, 20, (2, 60))
    edges = torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)
    edges = edges[:, edges[0] != edges[1]]
    model = LabelPropNL(1, 3, num_steps=400, alpha=0.9)
    nodes, classes = torch.arange(6), torch.arange(6) % 3
    model.solve((torch.zeros(20, 1), edges), Labelled(nodes, classes))
    A = torch.zeros(20, 20)
    A[edges[1], edges[0]] = 1
    scale = A.sum(dim=1).clamp(min=1).rsqrt()
    Y = torch.zeros(20, 3)
    Y[nodes, classes] = 1
    expected = torch.linalg.solve(torch.eye(20) - 0.9 * scale[:, None] * A * scale, 0.1 * Y)
    assert_close(model.embed(torch.zeros(20, 1), edges), expected)


def test_shares_may_exceed_1():
    # A hub with many labelled leaves collects more than 1: sqrt(49) / 7 of each.
    leaves = torch.arange(1, 50)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    star = torch.cat([star, star.flip(0)], dim=1)
    model = LabelPropNL(1, 2, num_steps=1, alpha=1.0)
    model.solve((torch.zeros(50, 1), star), Labelled(leaves, torch.zeros_like(leaves)))
    assert_close(model.embed(torch.zeros(50, 1), star)[0, 0], torch.tensor(7.0))
