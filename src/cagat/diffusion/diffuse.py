"""The rounds of Algorithm 1 by single products: on any device, for any switches, differentiable any number of times."""

from typing import NamedTuple

import torch
from torch import Tensor

from cagat.diffusion.attention import Chain, EdgeSupport, FullSupport
from cagat.diffusion.diffusion import Coefficients, Diffusion, is_zero, over_channels
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


def diffuse(Z: Tensor, G: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion) -> Diffused:
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
        diffusion: The switches.

    Shapes:
        - **Z**, **H:** :math:`(n, H, d)`
        - **G:** :math:`(E, H)`
    """
    alpha, lam, xi = coefficients
    K, T, normalization = diffusion.K, diffusion.T, diffusion.normalization
    S: FullSupport | EdgeSupport
    if diffusion.support == "edges":
        S = EdgeSupport(graph, G, alpha, xi, normalization)
    else:
        S = FullSupport(graph, G, alpha, xi, diffusion.affinity, normalization)

    if is_zero(xi) and not diffusion.feedback:
        # H enters S only by xi: no round needs the features of the round before, and the last one is all.
        S.advance(Z, K * T)
        return Diffused(_mix(lam, S.matmul(Z), Z), S, Z)

    V, chain = Z, Chain(graph, normalization, Z)
    H = _mix(lam, spmm_heads(graph.pattern, G, *chain.up_from(0)), Z)
    for _ in range(K):
        S.advance(H, T)
        if diffusion.feedback:
            V, chain = H, Chain(graph, normalization, H)
        H = _mix(lam, S.matmul(chain), Z)
    return Diffused(H, S, V)


def _mix(lam: float | Tensor, aggregated: Tensor, Z: Tensor) -> Tensor:
    """Eq. (9) and (18)."""
    if not isinstance(lam, Tensor) and lam == 1:
        return aggregated
    return torch.lerp(Z, aggregated, over_channels(lam))
