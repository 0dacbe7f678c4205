"""The rounds of Algorithm 1: attention and features, in turn."""

from typing import NamedTuple

import torch
from torch import Tensor

from cagat.diffusion.chain import Chain
from cagat.diffusion.coefficients import Coefficients, is_zero, over_channels
from cagat.diffusion.edge_support import EdgeSupport
from cagat.diffusion.full_support import FullSupport
from cagat.kernels import CSRGraph, spmm_heads


class Diffused(NamedTuple):
    """What the rounds end in.

    Attributes:
        H: The features.
        S: The attention.
        V: The features that S aggregated last: Z, or with feedback the H of the round before.
    """

    H: Tensor
    S: FullSupport | EdgeSupport
    V: Tensor


def diffuse(
    Z: Tensor,
    G: Tensor,
    graph: CSRGraph,
    coefficients: Coefficients,
    *,
    K: int,
    T: int,
    support: str = "full",
    affinity: str = "edges",
    feedback: bool = False,
    normalization: str = "row",
) -> Diffused:
    r"""Lines 5 to 14 of Algorithm 1.

    .. math::
        H &\leftarrow \lambda G Z + (1 - \lambda) Z, \qquad S \leftarrow G \\
        S &\leftarrow \alpha \bar{A} S \bar{A}^T + (1 - \alpha) G + \xi Q(H) \qquad (T \text{ times}) \\
        H &\leftarrow \lambda S Z + (1 - \lambda) Z \qquad (K \text{ times, with the } T \text{ steps before each})

    Args:
        Z: The transformed features of each head.
        G: GAT's attention at the entries of the graph.
        graph: The graph.
        coefficients: The weights alpha, lam and xi.
        K: The number of rounds.
        T: The number of diffusion steps in a round.
        support: Whether S lives on all pairs (``"full"``) or on the ``"edges"``.
        affinity: Whether Q is taken on the ``"edges"`` or on all pairs (``"full"``).
        feedback: Whether H, instead of Z, is aggregated.
        normalization: How the diffusion matrix is normalised.

    Shapes:
        - **Z**, **H:** :math:`(n, H, d)`
        - **G:** :math:`(E, H)`
    """
    alpha, lam, xi = coefficients
    S: FullSupport | EdgeSupport
    if support == "edges":
        S = EdgeSupport(graph, G, alpha, xi, normalization)
    else:
        S = FullSupport(graph, G, alpha, xi, affinity, normalization)

    if is_zero(xi) and not feedback:
        # H enters S only by xi: no round needs the features of the round before, and the last one is all.
        S.advance(Z, K * T)
        return Diffused(_mix(lam, S.matmul(Z), Z), S, Z)

    V, chain = Z, Chain(graph, normalization, Z)
    H = _mix(lam, spmm_heads(graph.pattern, G, *chain.up_from(0)), Z)
    for _ in range(K):
        S.advance(H, T)
        if feedback:
            V, chain = H, Chain(graph, normalization, H)
        H = _mix(lam, S.matmul(chain), Z)
    return Diffused(H, S, V)


def _mix(lam: float | Tensor, aggregated: Tensor, Z: Tensor) -> Tensor:
    """Eq. (9) and (18)."""
    if not isinstance(lam, Tensor) and lam == 1:
        return aggregated
    return torch.lerp(Z, aggregated, over_channels(lam))
