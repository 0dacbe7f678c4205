"""Numbers and graphs at the edge of what there is: output and gradients are finite, or there is a clear error."""

import pytest
import torch

from cagat import CaGATConv
from cagat.errors import CagatError

READINGS = ({}, {"affinity": "full"}, {"support": "edges"}, {"feedback": True}, {"learn_coefficients": True})
HUB_DEGREE = 100_000


def ring(nodes):
    around = torch.arange(nodes)
    return torch.stack([torch.cat([around, around.roll(1)]), torch.cat([around.roll(1), around])])


def star(leaves):
    outer = torch.arange(1, leaves + 1)
    return torch.stack([torch.cat([outer, outer * 0]), torch.cat([outer * 0, outer])])


def require_finite(conv, x, edge_index):
    try:
        out = conv(x, edge_index)
    except CagatError:
        return
    out.float().mean().backward()
    gradients = [weight.grad.float().flatten() for weight in conv.parameters() if weight.grad is not None]
    assert torch.cat([out.detach().float().flatten(), *gradients]).isfinite().all()


@pytest.mark.parametrize("reading", READINGS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype, reading):
    torch.manual_seed(0)
    require_finite(CaGATConv(6, 4, 2, **reading).to(dtype), torch.randn(50, 6).to(dtype), ring(50))
    with torch.autocast("cpu", dtype=dtype):
        require_finite(CaGATConv(6, 4, 2, **reading), torch.randn(50, 6), ring(50))


@pytest.mark.parametrize("reading", READINGS, ids=str)
@pytest.mark.parametrize("scale", [1e-42, 1e15, 1e30])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_extreme_size(scale, sparse, reading):
    torch.manual_seed(0)
    x = torch.randn(50, 6) * scale
    require_finite(CaGATConv(6, 4, 2, **reading), x.to_sparse() if sparse else x, ring(50))


@pytest.mark.parametrize("reading", READINGS, ids=str)
@pytest.mark.parametrize(("nodes", "loops"), [(9, True), (9, False), (1, True), (0, True)])
def test_graphs_without_edges(nodes, loops, reading):
    conv = CaGATConv(6, 4, 2, add_self_loops=loops, **reading)
    require_finite(conv, torch.randn(nodes, 6), torch.zeros(2, 0, dtype=torch.long))


@pytest.mark.slow
@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_a_hub_of_a_hundred_thousand_neighbours(reading):
    # On the edges, a step takes the square of a hub's degree in time; one step and one head are enough to see it.
    steps = {"K": 1, "T": 1} if reading.get("support") == "edges" else {}
    require_finite(CaGATConv(6, 4, 1, **steps, **reading), torch.randn(HUB_DEGREE + 1, 6), star(HUB_DEGREE))
