"""Epochs over the whole graph."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.models import Labelled, NodeClassifier


class Validation(NamedTuple):
    """What the validation nodes say; the accuracy is ``None`` if the model labels nodes only at the end."""

    loss: Tensor
    accuracy: float | None


class FullBatch:
    """An epoch is what the model makes of the whole graph, most often one step; other plans differ where they must.

    Args:
        model: The model.
        inputs: What the model takes: features, edges, and so on.
        train: The training nodes and their classes.
        val: The validation nodes and their classes.
    """

    every_process_knows_each_loss = True
    """Whether a loss that is no number is noticed before a step is taken with it, and not only after the epoch."""

    def __init__(self, model: NodeClassifier, inputs: tuple[Any, ...], train: Labelled, val: Labelled) -> None:
        self.model = model
        self.inputs = inputs
        self.train = train
        self.val = val

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The losses of an epoch; after each of them the trainer takes a step, and only then asks for the next."""
        return self.model.losses(self.inputs, self.train)

    def value(self, loss: Tensor) -> Tensor:
        """The loss as it is reported."""
        return loss.detach()

    def gradients_are_there(self) -> None:
        """Called between the gradients and the step that is taken with them."""

    def mean(self, losses: list[float]) -> float:
        """The loss of an epoch from those of its steps."""
        return sum(losses) / len(losses)

    def epoch_is_over(self, optimizer: torch.optim.Optimizer) -> None:
        """Called after the last step of an epoch."""

    def validate(self) -> Validation:
        """Look at the validation nodes; the model is in evaluation, and there are no gradients."""
        logits = None if self.model.labels_at_the_end else self.model(*self.inputs)
        loss = self.model.stopping_loss(self.inputs, logits, self.val)
        return Validation(loss, None if logits is None else accuracy_of(logits, self.val))

    def logits(self) -> Tensor | None:
        """The logits of all nodes, on the CPU; in a process that does not write, nothing."""
        logits: Tensor = self.model(*self.inputs)
        return logits.cpu()

    def report(self) -> dict[str, Any] | None:
        """What there is to say about processes and their communication."""
        return None


def accuracy_of(logits: Tensor, labelled: Labelled) -> float:
    """The share of the nodes whose class has the largest logit."""
    return (logits[labelled.nodes].argmax(dim=1) == labelled.classes).double().mean().item()
