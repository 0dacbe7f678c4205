"""Probabilities that mean what they say: a temperature, and how far probabilities are from frequencies."""

import math
from typing import NamedTuple

import torch
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest
from torch import Tensor
from torch.nn import functional as F

_LOWEST, _HIGHEST = -3.0, 3.0
"""The range of the logarithm of a temperature."""

_PRIOR = 0.35
"""The standard deviation that the logarithm of a temperature has before anything is known."""

BINS = 15
"""As in Guo et al., On Calibration of Modern Neural Networks, 2017."""


def fit_temperature(logits: Tensor, classes: Tensor, shares: Tensor | None = None) -> float:
    """The temperature by which logits must be divided to give the likeliest probabilities.

    It is taken from nodes that the model did not learn from. With few of them chance decides, so the temperature is
    drawn towards 1 by a normal prior on its logarithm.

    Args:
        logits: Of these nodes, shape ``(nodes, classes)``.
        classes: Their true classes.
        shares: The share of each class among all nodes, as far as it is known. Nodes for validation are often drawn
            evenly from the classes, and those of rare classes are harder, so that they then weigh less.
    """
    if len(classes) == 0:
        return 1.0
    logits, classes = logits.detach().cpu().double(), classes.cpu()
    weights = torch.ones(len(classes), dtype=torch.float64)
    if shares is not None:
        weights = (shares.cpu().double() / torch.bincount(classes, minlength=len(shares)).clamp(min=1))[classes]
    weights *= len(weights) / weights.sum().clamp(min=1e-12)

    def objective(logarithm: float) -> float:
        losses = F.cross_entropy(logits / math.exp(logarithm), classes, reduction="none")
        return (weights * losses).sum().item() + logarithm**2 / (2 * _PRIOR**2)

    return math.exp(minimize_scalar(objective, bounds=(_LOWEST, _HIGHEST), method="bounded").x)


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
