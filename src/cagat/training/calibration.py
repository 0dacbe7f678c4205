"""Probabilities that mean what they say: a temperature, and how far probabilities are from frequencies."""

from typing import NamedTuple

import torch
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest
from torch import Tensor
from torch.nn import functional as F

_LOWEST, _HIGHEST = -3.0, 3.0
"""The range of the logarithm of a temperature."""

BINS = 15
"""As in Guo et al., On Calibration of Modern Neural Networks, 2017."""


def fit_temperature(logits: Tensor, classes: Tensor) -> float:
    """The temperature by which logits must be divided to give the likeliest probabilities; 1 if that is not sure.

    It is taken from nodes that the model did not learn from. With few of them chance decides, so the temperature is
    drawn towards 1, by a normal prior on its logarithm, and it is 1 unless the gain in likelihood exceeds its standard
    error.

    Args:
        logits: Of these nodes, shape ``(nodes, classes)``.
        classes: Their true classes.
    """
    if len(classes) < 2:
        return 1.0
    logits, classes = logits.detach().cpu().double(), classes.cpu()

    def losses(logarithm: float) -> Tensor:
        return F.cross_entropy(logits / torch.tensor(logarithm).exp(), classes, reduction="none")

    def objective(logarithm: float) -> float:
        return losses(logarithm).sum().item() + logarithm**2 / 2

    found = minimize_scalar(objective, bounds=(_LOWEST, _HIGHEST), method="bounded")
    gain = losses(0.0) - losses(float(found.x))
    standard_error = gain.std().item() / len(gain) ** 0.5
    return float(torch.tensor(found.x, dtype=torch.float64).exp()) if gain.mean().item() > standard_error else 1.0


def expected_calibration_error(probabilities: Tensor, classes: Tensor) -> float:
    """How far the confidence in predicted classes is from the share that is right, on average over the nodes.

    A share, not a percentage. Nodes are put into bins of equal width by their confidence.
    """
    return sum(one.nodes * abs(one.confidence - one.accuracy) for one in reliability(probabilities, classes)) / max(
        1, len(classes)
    )


class Bin(NamedTuple):
    """Nodes of about the same confidence: how many they are, the mean confidence, and the share that is right."""

    nodes: int
    confidence: float
    accuracy: float


def reliability(probabilities: Tensor, classes: Tensor) -> list[Bin]:
    """The bins that hold any node, by increasing confidence."""
    confidence, predicted = probabilities.double().max(dim=1)
    right = (predicted == classes).double()
    place = (confidence * BINS).long().clamp(max=BINS - 1)
    members = [place == number for number in range(BINS)]
    return [
        Bin(int(which.sum()), confidence[which].mean().item(), right[which].mean().item())
        for which in members
        if which.any()
    ]


def interval(right: int, nodes: int) -> tuple[float, float]:
    """The 95 % interval (Wilson's) of an accuracy that was measured on so many nodes."""
    found = binomtest(right, nodes).proportion_ci(confidence_level=0.95, method="wilson")
    return float(found.low), float(found.high)
