"""The training loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.training.early_stopping import EarlyStopping


@dataclass(frozen=True)
class FitOptions:
    """How a network is fitted; the defaults are the paper's, and GAT's where the paper is silent.

    Attributes:
        lr: Adam's learning rate.
        weight_decay: Adam's L2 penalty.
        epochs: The largest number of epochs.
        patience: How many epochs in a row may pass without a lower validation loss.
    """

    lr: float = 0.005
    weight_decay: float = 5e-4
    epochs: int = 10_000
    patience: int = 100


class Epoch(NamedTuple):
    """What is known after an epoch, numbered from 1."""

    number: int
    loss: float
    val_loss: float
    val_accuracy: float


class FitResult(NamedTuple):
    """How the fitting went; the model holds the weights of :attr:`best`."""

    epochs: int
    best: Epoch
    seconds: float


def fit(
    model: torch.nn.Module,
    inputs: tuple[Any, ...],
    train: tuple[Tensor, Tensor],
    val: tuple[Tensor, Tensor],
    options: FitOptions | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Fit a network to the labels of the training nodes, and leave it with the weights of the best validation loss.

    It is given the labels of the training and of the validation nodes only, so it cannot read any other.

    Args:
        model: The network, which gives the logits of all nodes.
        inputs: What the network takes: features, edges, and so on.
        train: The training nodes and their classes.
        val: The validation nodes and their classes.
        options: How to fit.
        on_epoch: Called after each epoch.
    """
    options = options or FitOptions()
    if options.epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {options.epochs}")
    started = time.perf_counter()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, weight_decay=options.weight_decay)
    stopping = EarlyStopping(options.patience)
    best = epoch = Epoch(0, float("nan"), float("nan"), float("nan"))
    for number in range(1, options.epochs + 1):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs)[train[0]], train[1])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        val_loss, val_accuracy = _evaluate(model, inputs, val)
        epoch = Epoch(number, loss.item(), val_loss, val_accuracy)
        stop = stopping.update(number, val_loss, model)
        if stopping.best_epoch == number:
            best = epoch
        if on_epoch is not None:
            on_epoch(epoch)
        if stop:
            break
    stopping.restore(model)
    return FitResult(epoch.number, best, time.perf_counter() - started)


def accuracy(model: torch.nn.Module, inputs: tuple[Any, ...], nodes: Tensor, classes: Tensor) -> float:
    """The share of the nodes whose class the network finds."""
    return _evaluate(model, inputs, (nodes, classes))[1]


@torch.no_grad()
def _evaluate(model: torch.nn.Module, inputs: tuple[Any, ...], labelled: tuple[Tensor, Tensor]) -> tuple[float, float]:
    nodes, classes = labelled
    model.eval()
    logits = model(*inputs)[nodes]
    loss = F.cross_entropy(logits, classes).item()
    return loss, (logits.argmax(dim=1) == classes).double().mean().item()
