"""Numbers and graphs at the edge of what there is."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from cagat import CaGATConv
from cagat.errors import CagatError
from fault_kinds.fault import Fault, Outcome

_HUB_DEGREE = 100_000
_SWITCHES = ({}, {"affinity": "full"}, {"support": "edges"}, {"feedback": True}, {"learn_coefficients": True})

Extreme = Callable[[dict[str, object]], torch.Tensor]


def _ring(nodes: int) -> torch.Tensor:
    around = torch.arange(nodes)
    return torch.stack([torch.cat([around, around.roll(1)]), torch.cat([around.roll(1), around])])


def _result(conv: CaGATConv, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """The output and all gradients, in one vector."""
    out = conv(x, edge_index)
    out.float().mean().backward()
    gradients = [weight.grad.float().flatten() for weight in conv.parameters() if weight.grad is not None]
    return torch.cat([out.detach().float().flatten(), *gradients])


def _typed(dtype: torch.dtype) -> Extreme:
    return lambda switches: _result(CaGATConv(6, 4, 2, **switches).to(dtype), torch.randn(50, 6).to(dtype), _ring(50))


def _autocast(dtype: torch.dtype, *, sparse: bool = False) -> Extreme:
    def run(switches: dict[str, object]) -> torch.Tensor:
        x = torch.randn(50, 6)
        with torch.autocast("cpu", dtype=dtype):
            return _result(CaGATConv(6, 4, 2, **switches), x.to_sparse() if sparse else x, _ring(50))

    return run


def _scaled(scale: float, *, sparse: bool = False) -> Extreme:
    def run(switches: dict[str, object]) -> torch.Tensor:
        x = torch.randn(50, 6) * scale
        return _result(CaGATConv(6, 4, 2, **switches), x.to_sparse() if sparse else x, _ring(50))

    return run


def _hub(switches: dict[str, object]) -> torch.Tensor:
    # On the edges, a step takes the square of a hub's degree in time; one step and one head are enough to see it.
    switches = {"K": 1, "T": 1, **switches} if switches.get("support") == "edges" else switches
    leaves = torch.arange(1, _HUB_DEGREE + 1)
    edges = torch.stack([torch.cat([leaves, leaves * 0]), torch.cat([leaves * 0, leaves])])
    return _result(CaGATConv(6, 4, 1, **switches), torch.randn(_HUB_DEGREE + 1, 6), edges)


def _edgeless(nodes: int) -> Extreme:
    return lambda switches: _result(
        CaGATConv(6, 4, 2, **switches), torch.randn(nodes, 6), torch.zeros(2, 0, dtype=torch.long)
    )


def _without_loops(switches: dict[str, object]) -> torch.Tensor:
    conv = CaGATConv(6, 4, 2, add_self_loops=False, **switches)
    return _result(conv, torch.randn(9, 6), torch.zeros(2, 0, dtype=torch.long))


EXTREME_CASES: dict[str, Extreme] = {
    "float16": _typed(torch.float16),
    "bfloat16": _typed(torch.bfloat16),
    "float64": _typed(torch.float64),
    "bfloat16 autocast": _autocast(torch.bfloat16),
    "float16 autocast": _autocast(torch.float16),
    "bfloat16 autocast, sparse features": _autocast(torch.bfloat16, sparse=True),
    "denormal features": _scaled(1e-42),
    "denormal sparse features": _scaled(1e-42, sparse=True),
    "features of 1e15": _scaled(1e15),
    "features of 1e30": _scaled(1e30),
    "sparse features of 1e30": _scaled(1e30, sparse=True),
    "0 edges": _edgeless(9),
    "0 edges and no self-loops": _without_loops,
    "1 node": _edgeless(1),
    "0 nodes": _edgeless(0),
    f"a hub of degree {_HUB_DEGREE}": _hub,
}


def extremes(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Run the layer forward and backward on each case, in each reading of the paper."""
    torch.manual_seed(draw.randrange(2**32))
    cases = [(name, switches) for name in EXTREME_CASES for switches in _SWITCHES]
    # The hub on the edges takes as long as all others together.
    cases.sort(key=lambda case: "hub" in case[0] and case[1].get("support") == "edges")
    for name, switches in cases[:tries]:
        yield Outcome(f"{name} {switches}", _wrong(EXTREME_CASES[name], switches))


def _wrong(run: Extreme, switches: dict[str, object]) -> str:
    try:
        found = run(switches)
    except CagatError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return (
        "" if found.isfinite().all() else f"{int((~found.isfinite()).sum())} results are not finite, and nobody said so"
    )


EXTREMES = Fault(
    "extremes",
    "half precision, bfloat16 autocast, denormal and 1e30-sized features, a 100,000-degree hub, 0 edges, 1 node",
    "finite, or a clear error; output and gradients",
    tries=len(EXTREME_CASES) * len(_SWITCHES),
    quick=len(EXTREME_CASES) * len(_SWITCHES) - 1,
    run=extremes,
)
