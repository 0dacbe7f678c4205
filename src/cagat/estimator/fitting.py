"""How the network is trained: what is held out, when to stop, and how sure its probabilities are."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.models import CaGAT, Labelled
from cagat.settings import FitOptions
from cagat.training import fit
from cagat.training.calibration import fit_temperature
from cagat.training.cross_fit import FOLDS, CrossFit, folds_of
from cagat.training.objective import Objective
from cagat.training.trainer import Epoch, FullBatch

AUTO = "auto"
"""Hold out nothing; see :func:`fit_network`."""


_NOBODY = Labelled(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


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
    weight: Tensor | None,
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
        weight: How much each class weighs in the loss, if not all the same.
        options: How to fit.
        random: Decides which nodes are held out, the weights and dropout.
    """
    held = AUTO if isinstance(fraction, str) else hold_out(numbers, fraction, random)
    labelled = _labelled(numbers, np.flatnonzero(numbers >= 0))._replace(class_weight=weight)
    seed = int(random.randint(np.iinfo(np.int32).max))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not isinstance(held, str) and len(held[1]):
            train, val = (_labelled(numbers, nodes) for nodes in held)
            return _held_out(make(), inputs, train._replace(class_weight=weight), val, options)
        folds = folds_of(labelled.classes, seed) if isinstance(held, str) else None
        if folds is not None:
            return _cross_fitted(make, inputs, labelled, folds, options)
        fixed = _fixed(make(), inputs, labelled, options)
    if not isinstance(fraction, str) and fraction > 0:
        warnings.warn(
            f"{len(labelled.nodes)} labelled nodes of {int(numbers.max()) + 1} classes are too few to hold out "
            f"{fraction:g} of them for validation, so all of them are trained on, for {len(fixed.history['loss'])} "
            'epochs. Label more nodes, or set validation_fraction="auto" or 0 to say that this is meant.',
            stacklevel=3,
        )
    return fixed


def _held_out(
    model: CaGAT, inputs: tuple[Any, ...], train: Labelled, val: Labelled, options: FitOptions
) -> FittedNetwork:
    """Stop by the loss on validation nodes, which also calibrate."""
    result = fit(model, inputs, train, val, options)
    with torch.no_grad():
        temperature = fit_temperature(model(*inputs)[val.nodes], val.classes)
    best, history = result.best, _history(result.history, "loss", "val_loss", "val_accuracy")
    return FittedNetwork(model, history, "held-out", best.val_loss, best.val_accuracy, temperature)


def _cross_fitted(
    make: Callable[[], CaGAT], inputs: tuple[Any, ...], labelled: Labelled, folds: Tensor, options: FitOptions
) -> FittedNetwork:
    """Stop when networks that were trained without a fold of the labels were best on it; those folds also calibrate."""
    splits = [(labelled, _NOBODY)]
    judged = labelled._replace(class_weight=None)
    splits += [(labelled.some(folds != number), judged.some(folds == number)) for number in range(FOLDS)]
    objective = Objective.of(options, labelled, int(inputs[0].shape[0]))
    plan, *others = (FullBatch(make(), inputs, train, val, objective) for train, val in splits)
    trainer = CrossFit(plan, others, options)
    while not trainer.finished:
        trainer.run_epoch()
    trainer.finish()
    best, history = trainer.best, _history(trainer.history, "loss", "val_loss", "val_accuracy")
    assert best is not None
    assert isinstance(trainer.model, CaGAT)
    temperature = fit_temperature(trainer.out_of_fold, labelled.classes)
    return FittedNetwork(trainer.model, history, "cross-fitting", best.val_loss, best.val_accuracy, temperature)


def _fixed(model: CaGAT, inputs: tuple[Any, ...], labelled: Labelled, options: FitOptions) -> FittedNetwork:
    """Train on all labels for a fixed time; nothing is left to calibrate with."""
    result = fit(model, inputs, labelled, _NOBODY, options)
    return FittedNetwork(model, _history(result.history, "loss"), "fixed", None, None, 1.0)


def _history(epochs: list[Epoch], *names: str) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([getattr(epoch, name) for epoch in epochs]) for name in names}


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
