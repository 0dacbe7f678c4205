"""Probabilities that mean what they say: a temperature, and how far probabilities are from frequencies."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

_LOWEST, _HIGHEST = -3.0, 3.0
"""The range of the logarithm of a temperature."""

_PRIOR = 0.25
"""The scale of Laplace's distribution, which the logarithm of a temperature has before anything is known."""

BINS = 15
"""As in Guo et al., On Calibration of Modern Neural Networks, 2017."""


def fit_temperature(logits: Tensor, classes: Tensor, shares: Tensor | None = None) -> float:
    """The temperature by which logits must be divided for confidences to say best which predictions are right.

    It is taken from nodes that the model did not learn from. With few of them chance decides, so a Laplace prior holds
    the temperature at 1 as long as the likelihood gains no more than by chance, and lets it go beyond. The likelihood
    is that of right and wrong: that of all classes would also judge how wrong predictions spread over the others.

    Args:
        logits: Of these nodes, shape ``(nodes, classes)``.
        classes: Their true classes.
        shares: The share of each class among all nodes, for nodes that were drawn evenly from the classes: those of
            rare classes, which are harder, then weigh less.
    """
    from scipy.optimize import minimize_scalar  # It takes half a second to import.

    if len(classes) == 0:
        return 1.0
    logits, classes = logits.detach().cpu().double(), classes.cpu()
    weights = torch.ones(len(classes), dtype=torch.float64)
    if shares is not None:
        weights = (shares.cpu().double() / torch.bincount(classes, minlength=len(shares)).clamp(min=1))[classes]
    # They sum to the number of nodes of equal weight that would tell as much.
    weights *= weights.sum() / weights.square().sum()

    right = (logits.argmax(dim=1) == classes).double()

    def objective(logarithm: float) -> float:
        confidence = (logits / math.exp(logarithm)).softmax(dim=1).amax(dim=1)
        losses = binary_cross_entropy(confidence.clamp(max=1.0), right, reduction="none")
        return (weights @ losses).item() + abs(logarithm) / _PRIOR

    return math.exp(minimize_scalar(objective, bounds=(_LOWEST, _HIGHEST), method="bounded").x)


def predicted_shares(logits: Tensor) -> Tensor:
    """The share of each class among all nodes, as a model sees it.

    Only where nodes were drawn evenly from the classes: elsewhere they show the shares themselves, and a model that
    predicts one class for nearly all nodes would be called more accurate than it is.
    """
    # One more of each: a class that is never predicted is not one that is not there.
    counts = torch.bincount(logits.argmax(dim=1), minlength=logits.size(1)) + 1
    return counts / counts.sum()


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
    bin_of = (confidence * BINS).long().clamp(max=BINS - 1)
    members = [bin_of == number for number in range(BINS)]
    return [
        Bin(int(which.sum()), confidence[which].mean().item(), right[which].mean().item())
        for which in members
        if which.any()
    ]


def interval(right: int, nodes: int) -> tuple[float, float]:
    """The 95 % interval (Wilson's) of an accuracy that was measured on so many nodes."""
    # scipy.stats has it, too, but takes a second to import.
    share, z = right / nodes, NormalDist().inv_cdf(0.975)
    centre = share + z**2 / (2 * nodes)
    half = z * math.sqrt(share * (1 - share) / nodes + (z / (2 * nodes)) ** 2)
    low, high = ((centre + sign * half) / (1 + z**2 / nodes) for sign in (-1, 1))
    return (low if right else 0.0), (high if right < nodes else 1.0)
