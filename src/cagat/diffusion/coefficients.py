"""The coefficients alpha, lam and xi: one number for all heads, or one a head."""

from typing import NamedTuple

from torch import Tensor


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


def is_zero(coefficient: float | Tensor) -> bool:
    """Whether a term can be left out: it is zero, and cannot be learnt to be anything else."""
    return not isinstance(coefficient, Tensor) and coefficient == 0


def over_channels(coefficient: float | Tensor) -> float | Tensor:
    """The coefficient as a factor of ``(nodes, heads, channels)``."""
    return coefficient[:, None] if isinstance(coefficient, Tensor) else coefficient
