"""Training the network on the labelled nodes."""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cagat.estimator.held_out import hold_out
from cagat.estimator.labels import NumberedLabels
from cagat.estimator.settings import Settings
from cagat.models import CaGAT, Labelled, create
from cagat.training import FitResult, fit

EPOCHS_WITHOUT_VALIDATION = 200
"""How long is trained if nothing says when to stop: as long as Kipf and Welling trained GCN at the most."""


class Learnt(NamedTuple):
    """A trained network, and how its training went: arrays with a number for each epoch."""

    model: CaGAT
    history: dict[str, NDArray[np.float64]]


def learn(
    inputs: tuple[Any, ...],
    labels: NumberedLabels,
    settings: Settings,
    validation_fraction: float,
    random: np.random.RandomState,
) -> Learnt:
    """Train a network; torch's own random numbers are left as they were.

    Args:
        inputs: Features, edges and weights.
        labels: The classes and who is in them.
        settings: The network and the options of the training.
        validation_fraction: How many of the labelled nodes decide when to stop instead of being trained on.
        random: Where all randomness comes from.
    """
    train_nodes, val_nodes = hold_out(labels.numbers, validation_fraction, random)
    options, validated = settings.options, len(val_nodes) > 0
    if not validated:
        epochs = min(options.epochs, EPOCHS_WITHOUT_VALIDATION)
        options = replace(options, epochs=epochs, patience=epochs)
    if not validated and validation_fraction > 0:
        warnings.warn(
            f"{len(train_nodes)} labelled nodes of {len(labels.classes)} classes are too few to hold out "
            f"{validation_fraction:g} of them for validation, so all of them are trained on, for {options.epochs} "
            "epochs. Label more nodes, or set validation_fraction=0 to say that this is meant.",
            UserWarning,
            stacklevel=4,
        )
    train = _labelled(train_nodes, labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.randint(np.iinfo(np.int32).max)))
        # The features are of single precision, whatever torch's default is.
        model = create("cagat", inputs[0].shape[1], len(labels.classes), **settings.network).float()
        assert isinstance(model, CaGAT)
        result = fit(model, inputs, train, _labelled(val_nodes, labels) if validated else train, options)
    return Learnt(model, _history(result, validated))


def _labelled(nodes: NDArray[np.int64], labels: NumberedLabels) -> Labelled:
    return Labelled(torch.from_numpy(nodes), torch.from_numpy(labels.numbers[nodes]))


def _history(result: FitResult, validated: bool) -> dict[str, NDArray[np.float64]]:
    names = ("loss", "val_loss", "val_accuracy") if validated else ("loss",)
    return {name: np.array([getattr(epoch, name) for epoch in result.history]) for name in names}
