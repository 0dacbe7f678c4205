"""Fitting a model in one call."""

from collections.abc import Callable
from typing import Any, NamedTuple

from cagat.models import Labelled, NodeClassifier
from cagat.settings import FitOptions
from cagat.training.trainer import Epoch, Trainer


class FitResult(NamedTuple):
    """How the fitting went; the model holds the weights of :attr:`best`."""

    history: list[Epoch]
    best: Epoch


def fit(
    model: NodeClassifier,
    inputs: tuple[Any, ...],
    train: Labelled,
    val: Labelled,
    options: FitOptions | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Fit a model to the labels of the training nodes, and leave it with the weights of the best validation loss.

    The arguments are those of :class:`Trainer`; `on_epoch` is called after each epoch.
    """
    trainer = Trainer(model, inputs, train, val, options)
    while not trainer.finished:
        epoch = trainer.run_epoch()
        if on_epoch is not None:
            on_epoch(epoch)
    trainer.finish()
    assert trainer.best is not None, "an epoch whose loss is a number is better than none"
    return FitResult(trainer.history, trainer.best)
