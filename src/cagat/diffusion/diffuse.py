"""The rounds of Algorithm 1 by single products: on any device, for any switches, differentiable any number of times."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from cagat.diffusion.attention import Chain, EdgeSupport, FullSupport, is_zero, over_channels
from cagat.kernels import CSRGraph, spmm_heads


@dataclass(frozen=True)
class Diffusion:
    """The switches of :class:`~cagat.CaGATConv`, which documents them. They are checked there.

    Attributes:
        K: The number of rounds.
        T: The number of diffusion steps per round.
        support: Whether S lives on all pairs (``"full"``) or on the ``"edges"``.
        affinity: Whether Q is taken on the ``"edges"`` or on all pairs (``"full"``).
        feedback: Whether H is aggregated instead of Z.
        normalization: How the diffusion matrix is normalised: ``"row"``, ``"sym"``, ``"walk"`` or ``"gcn"``.
    """

    K: int = 3
    T: int = 2
    support: Literal["full", "edges"] = "full"
    affinity: Literal["edges", "full"] = "edges"
    feedback: bool = False
    normalization: Literal["row", "sym", "walk", "gcn"] = "row"


class Coefficients(NamedTuple):
    """The three weights of the diffusion, each one number or a tensor of shape ``(heads,)``.

    Attributes:
        alpha: The share of context in the attention, Eq. (15).
        lam: The share of aggregated features in the output, Eq. (18).
        xi: The weight of the affinity between features, Eq. (15).
    """

    alpha: float | Tensor
    lam: float | Tensor
    xi: float | Tensor

    def chunk(self, groups: int) -> "list[Coefficients]":
        """The coefficients of groups of heads, as tensors are split into chunks."""
        each = (value.chunk(groups) if isinstance(value, Tensor) else [value] * groups for value in self)
        return [Coefficients(*group) for group in zip(*each, strict=True)]


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
