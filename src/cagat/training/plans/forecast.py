"""How many bytes a step over nodes in parts must exchange, from the partition and the layers alone."""

from typing import NamedTuple

from torch.nn import Parameter

from cagat.diffusion.diffusion import is_zero
from cagat.distributed import Halo, Traffic
from cagat.nn import CaGATConv


class Forecast(NamedTuple):
    """What one process hands over.

    Attributes:
        step: In a step of training, forward, backward and the sums of the gradients and of the loss.
        evaluation: In a forward pass.
    """

    step: Traffic
    evaluation: Traffic


class _Needs(NamedTuple):
    """What a forward pass of a layer exchanges.

    Attributes:
        columns: How many numbers of each halo node.
        summed: How many numbers are summed over all processes.
    """

    columns: int
    summed: int


def forecast(convs: list[CaGATConv], halo: Halo) -> Forecast:
    """Count what layers exchange over a halo.

    Every exchange sends, of each of our nodes that a neighbour in another process needs, a row there; its gradient goes
    the other way, so that the backward pass sends a row for each node of our halo.
    """
    itemsize = convs[0].att_src.itemsize
    needs = [_needs(conv) for conv in convs]
    columns, summed = sum(need.columns for need in needs), sum(need.summed for need in needs)
    if halo.world.size == 1:
        return Forecast(Traffic(), Traffic())
    weights = sum(parameter.numel() for conv in convs for parameter in _learning(conv))
    out, back = sum(halo.sent), sum(halo.received)
    return Forecast(
        step=Traffic(columns * itemsize * (out + back), (weights + 1 + 2 * summed) * itemsize),
        evaluation=Traffic(columns * itemsize * out, summed * itemsize),
    )


def _learning(conv: CaGATConv) -> list[Parameter]:
    """The parameters that get a gradient: those of the attention do not where nothing is aggregated."""
    aggregates = not is_zero(conv.coefficients().lam)
    named = conv.named_parameters()
    return [parameter for name, parameter in named if aggregates or name.startswith(("lin.", "res.", "bias"))]


def _needs(conv: CaGATConv) -> _Needs:
    alpha, lam, xi = conv.coefficients()
    if is_zero(lam):
        return _Needs(0, 0)  # Nothing is aggregated.
    K, T, width = conv.K, conv.T, conv.heads * conv.out_channels
    has_context, has_affinity = not is_zero(alpha), not is_zero(xi)
    if not has_affinity and not conv.feedback:
        K, T = 1, K * T  # Only the last round is computed.
    # The steps that the product of each round goes through: down the chain, and up again.
    steps = [k * T if has_context else 0 for k in range(1, K + 1)]
    links = max(steps, default=0) + 1  # The chain of Z, shared by all rounds.
    if conv.feedback:
        links = 1 + sum(step + 1 for step in steps)  # A chain for each round.
    affine = K if has_affinity and conv.affinity == "edges" and T > 0 else 0
    rows = links + sum(steps) + affine
    blocks = sum(step if has_context else min(T, 1) for step in steps)
    is_full = has_affinity and conv.affinity == "full"
    return _Needs(
        # The logits of the attention, one number a head, and then features.
        columns=conv.heads + rows * width,
        summed=blocks * width * conv.out_channels if is_full else 0,
    )
