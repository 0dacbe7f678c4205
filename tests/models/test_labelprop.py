import pytest
import torch
from torch.testing import assert_close

from cagat.models import Labelled, LabelProp, LabelPropNL

# 0 - 1 - 2 - 3 with a label at each end, and node 4 alone.
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.zeros(5, 1)


def fitted(steps: int) -> LabelProp:
    model = LabelProp(1, 2, steps)
    model.solve((X, PATH), Labelled(torch.tensor([0, 3]), torch.tensor([0, 1])))
    return model


@pytest.mark.parametrize(
    ("steps", "first"),
    [(0, [1, 0.5, 0.5, 0]), (1, [1, 1, 0, 0]), (2, [1, 2 / 3, 1 / 3, 0]), (200, [1, 2 / 3, 1 / 3, 0])],
)
def test_by_hand(steps, first):
    found = fitted(steps)(X, PATH).softmax(dim=1)
    assert_close(found[:, 0], torch.tensor([*first, 0.5]))


def test_two_steps_before_normalisation():
    shares = fitted(2).embed(X, PATH)
    assert_close(shares[1:3], torch.tensor([[0.5, 0.25], [0.25, 0.5]]))


def test_weights_and_self_loops():
    weight = torch.tensor([3.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    loops = torch.cat([PATH, torch.tensor([[1, 2], [1, 2]])], dim=1)
    model = fitted(200)
    found = model(X, loops, torch.cat([weight, torch.ones(2)])).softmax(dim=1)
    # Resistances in a row: 1/3, 1 and 1.
    assert_close(found[:4, 0], torch.tensor([1, 6 / 7, 3 / 7, 0]), rtol=1e-4, atol=1e-5)


def test_everything_is_finite():
    assert fitted(50)(X, PATH).isfinite().all()


def test_refuses_a_smaller_graph():
    with pytest.raises(ValueError, match="label of node 3, but the graph has 2 nodes"):
        fitted(5)(X[:2], PATH[:, :2])


def test_does_not_label_other_graphs():
    assert not LabelProp.inductive


def test_nl_converges_to_the_closed_form():
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


def test_nl_shares_may_exceed_1():
    # A hub with many labelled leaves collects more than 1: sqrt(49) / 7 of each.
    leaves = torch.arange(1, 50)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    star = torch.cat([star, star.flip(0)], dim=1)
    model = LabelPropNL(1, 2, num_steps=1, alpha=1.0)
    model.solve((torch.zeros(50, 1), star), Labelled(leaves, torch.zeros_like(leaves)))
    assert_close(model.embed(torch.zeros(50, 1), star)[0, 0], torch.tensor(7.0))
