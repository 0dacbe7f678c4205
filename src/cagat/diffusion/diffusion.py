"""What the diffusion is asked to do: its switches, and the coefficients alpha, lam and xi."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Tensor


@dataclass(frozen=True)
class Diffusion:
    """The switches of :class:`~cagat.CaGATConv`, which documents them. They are checked there.

    Attributes:
        K: The number of rounds.
        T: The number of diffusion steps per round.
        support: Whether S lives on all pairs (``"full"``) or on the ``"edges"``.
        affinity: Whether Q is taken on the ``"edges"`` or on all pairs (``"full"``).
        feedback: Whether H is aggregated instead of Z.
        normalization: How the diffusion matrix is normalised: ``"row"``, ``"sym"`` or ``"walk"``.
    """

    K: int = 3
    T: int = 2
    support: Literal["full", "edges"] = "full"
    affinity: Literal["edges", "full"] = "edges"
    feedback: bool = False
    normalization: Literal["row", "sym", "walk"] = "row"


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

    def of_heads(self, heads: slice) -> "Coefficients":
        """The coefficients of some of the heads."""
        return Coefficients(*(value[heads] if isinstance(value, Tensor) else value for value in self))


def is_zero(coefficient: float | Tensor) -> bool:
    """Whether a term can be left out: it is zero, and cannot be learnt to be anything else."""
    return not isinstance(coefficient, Tensor) and coefficient == 0


def over_channels(coefficient: float | Tensor) -> float | Tensor:
    """The coefficient as a factor of ``(nodes, heads, channels)``."""
    return coefficient[:, None] if isinstance(coefficient, Tensor) else coefficient
