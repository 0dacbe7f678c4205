"""Training the network on the labelled nodes."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cagat.estimator.validation import NumberedLabels, Parameters
from cagat.models import CaGAT, Labelled, create
from cagat.training import fit

EPOCHS_WITHOUT_VALIDATION = 200
"""How long is trained if nothing says when to stop: as long as Kipf and Welling trained GCN at the most."""


def learn(
    inputs: tuple[Any, ...],
    labels: NumberedLabels,
    parameters: Parameters,
    validation_fraction: float,
    random: np.random.RandomState,
) -> tuple[CaGAT, dict[str, NDArray[np.float64]]]:
    """Train a network, and say how it went, a number per epoch; torch's own random numbers are left as they were."""
    train_nodes, val_nodes = hold_out(labels.numbers, validation_fraction, random)
    options, validated = parameters.options, len(val_nodes) > 0
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
    train, val = (
        Labelled(torch.from_numpy(nodes), torch.from_numpy(labels.numbers[nodes])) for nodes in (train_nodes, val_nodes)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.randint(np.iinfo(np.int32).max)))
        # The features are of single precision, whatever torch's default is.
        model = create("cagat", inputs[0].shape[1], len(labels.classes), **parameters.network).float()
        assert isinstance(model, CaGAT)
        result = fit(model, inputs, train, val if validated else train, options)
    names = ("loss", "val_loss", "val_accuracy") if validated else ("loss",)
    return model, {name: np.array([getattr(epoch, name) for epoch in result.history]) for name in names}


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
    val = np.sort(np.concatenate(held)).astype(np.int64)
    if len(val) < classes:
        val = val[:0]
    return np.setdiff1d(np.flatnonzero(numbers >= 0), val).astype(np.int64), val
