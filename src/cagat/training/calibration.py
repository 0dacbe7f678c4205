"""Probabilities that mean what they say: a temperature, and how far probabilities are from frequencies."""

import math
from typing import NamedTuple

from scipy.optimize import minimize_scalar
from scipy.stats import binomtest
from torch import Tensor

_LOWEST, _HIGHEST = -3.0, 3.0
"""The range of the logarithm of a temperature."""

_PRIOR = 0.2
"""The scale of Laplace's distribution, which the logarithm of a temperature has before anything is known."""

BINS = 15
"""As in Guo et al., On Calibration of Modern Neural Networks, 2017."""


def fit_temperature(logits: Tensor, classes: Tensor) -> float:
    """The temperature by which logits must be divided for the mean confidence to be the accuracy.

    It is taken from nodes that the model did not learn from. With few of them chance decides, so a Laplace prior holds
    the temperature at 1 as long as confidence and accuracy differ by no more than chance, and lets it go beyond.
    The likelihood of all classes would ask for a sharper distribution where the confidence is right already.

    All nodes weigh the same, also where they were drawn evenly from the classes. Weights by predicted classes would
    call a model that predicts one class for nearly all nodes more accurate than it is.

    Args:
        logits: Of these nodes, shape ``(nodes, classes)``.
        classes: Their true classes.
    """
    nodes = len(classes)
    if nodes == 0:
        return 1.0
    logits = logits.detach().cpu().double()
    right = int((logits.argmax(dim=1) == classes.cpu()).sum())
    # One right and one wrong more, as no accuracy is certain.
    smoothed = (right + 1) / (nodes + 2)
    variance = smoothed * (1 - smoothed) / nodes

    def objective(logarithm: float) -> float:
        confidence = (logits / math.exp(logarithm)).softmax(dim=1).amax(dim=1).mean().item()
        return (confidence - right / nodes) ** 2 / (2 * variance) + abs(logarithm) / _PRIOR

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
