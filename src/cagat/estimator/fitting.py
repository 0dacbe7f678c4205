"""How the network is trained: what is held out, when to stop, and how sure its probabilities are."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cagat.models import CaGAT, Labelled
from cagat.settings import FitOptions
from cagat.training import fit
from cagat.training.calibration import fit_temperature

AUTO = "auto"
"""Hold out nothing; see :func:`fit_network`."""

FIXED_EPOCHS = 200
"""How long is trained if nothing says when to stop: as long as Kipf and Welling trained GCN at the most."""

LABELS_FOR_FOLDS = 5
"""With fewer labels per class than this (the median), folds are too small to tell when to stop."""


class FittedNetwork(NamedTuple):
    """A trained network, and what the estimator tells about its training."""

    model: CaGAT
    history: dict[str, NDArray[np.float64]]
    stopping: str
    best_val_loss: float | None
    estimated_accuracy: float | None
    temperature: float


def fit_network(
    make: Callable[[], CaGAT],
    inputs: tuple[Any, ...],
    numbers: NDArray[np.int64],
    fraction: float | str,
    options: FitOptions,
    random: np.random.RandomState,
) -> FittedNetwork:
    """Train a network on the labelled nodes.

    A number holds out that fraction of every class (:func:`hold_out`). `"auto"` trains on all labelled nodes: when to
    stop comes from cross-fitting if there are labels enough for it, and is fixed otherwise.

    Args:
        make: Makes the network, with weights drawn from torch's generator.
        inputs: What the network takes.
        numbers: The number of each node's class, -1 for none.
        fraction: `validation_fraction` of the classifier.
        options: How to fit.
        random: Decides which nodes are held out, the weights and dropout.
    """
    held = AUTO if isinstance(fraction, str) else hold_out(numbers, fraction, random)
    labelled = np.flatnonzero(numbers >= 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.randint(np.iinfo(np.int32).max)))
        if not isinstance(held, str) and len(held[1]):
            train, val = (_labelled(numbers, nodes) for nodes in held)
            return _held_out(make(), inputs, train, val, options)
        if isinstance(held, str) and np.median(np.bincount(numbers[labelled])) >= LABELS_FOR_FOLDS:
            return _cross_fitted(make, inputs, _labelled(numbers, labelled), options)
        fixed = _fixed(make(), inputs, _labelled(numbers, labelled), options)
    if not isinstance(fraction, str) and fraction > 0:
        warnings.warn(
            f"{len(labelled)} labelled nodes of {int(numbers.max()) + 1} classes are too few to hold out {fraction:g} "
            f"of them for validation, so all of them are trained on, for {len(fixed.history['loss'])} epochs. Label "
            'more nodes, or set validation_fraction="auto" or 0 to say that this is meant.',
            stacklevel=3,
        )
    return fixed


def _held_out(
    model: CaGAT, inputs: tuple[Any, ...], train: Labelled, val: Labelled, options: FitOptions
) -> FittedNetwork:
    """Stop by the loss on validation nodes, which also calibrate."""
    result = fit(model, inputs, train, val, options)
    history = {
        name: np.array([getattr(epoch, name) for epoch in result.history])
        for name in ("loss", "val_loss", "val_accuracy")
    }
    with torch.no_grad():
        temperature = fit_temperature(model(*inputs)[val.nodes], val.classes)
    return FittedNetwork(model, history, "held-out", result.best.val_loss, result.best.val_accuracy, temperature)


def _cross_fitted(
    make: Callable[[], CaGAT], inputs: tuple[Any, ...], labelled: Labelled, options: FitOptions
) -> FittedNetwork:
    """Stop when networks that were trained without a fold of the labels were best on it; those folds also calibrate."""
    # TODO(lead): call training/cross_fit.py here.
    return _fixed(make(), inputs, labelled, options)


def _fixed(model: CaGAT, inputs: tuple[Any, ...], labelled: Labelled, options: FitOptions) -> FittedNetwork:
    """Train on all labels for a fixed time; nothing is left to calibrate with."""
    epochs = min(options.epochs, FIXED_EPOCHS)
    result = fit(model, inputs, labelled, labelled, replace(options, epochs=epochs, patience=epochs))
    history = {"loss": np.array([epoch.loss for epoch in result.history])}
    return FittedNetwork(model, history, "fixed", None, None, 1.0)


def hold_out(
    numbers: NDArray[np.int64], fraction: float, random: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the labelled nodes into training and validation nodes, each in order, the same fraction of every class.

    A class with n labelled nodes gives `fraction * n` of them to validation, rounded, and keeps at least one. If
    that makes fewer validation nodes than there are classes, they would tell nothing: then there are none.
    """
    classes = int(numbers.max()) + 1
    held = []
    for number in range(classes):
        members = random.permutation(np.flatnonzero(numbers == number))
        held.append(members[: min(int(fraction * len(members) + 0.5), len(members) - 1)])
    val = np.sort(np.concatenate(held))
    if len(val) < classes:
        val = val[:0]
    return np.setdiff1d(np.flatnonzero(numbers >= 0), val), val


def _labelled(numbers: NDArray[np.int64], nodes: NDArray[np.int64]) -> Labelled:
    return Labelled(torch.from_numpy(nodes), torch.from_numpy(numbers[nodes]))
