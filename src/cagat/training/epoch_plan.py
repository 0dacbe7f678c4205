"""How an epoch goes over a graph: the interface of all plans, and the plan that takes the whole graph."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.models import Labelled, NodeClassifier


class Validation(NamedTuple):
    """Loss and accuracy on the validation nodes; the accuracy is ``None`` if the model labels nodes only at the end."""

    loss: float
    accuracy: float | None


class EpochPlan(ABC):
    """How an epoch goes over the graph: which losses it takes steps on, and how it is validated.

    In each epoch the trainer asks for :meth:`losses`, one at a time. It computes the gradients of a loss, calls
    :meth:`after_backward` and takes a step; after the last step it calls :meth:`after_epoch`, then :meth:`validate`.
    """

    def __init__(self, model: NodeClassifier, inputs: tuple[Any, ...], train: Labelled, val: Labelled) -> None:
        self.model = model
        self.inputs = inputs
        self.train = train
        self.val = val

    @abstractmethod
    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The losses of an epoch; the trainer takes a step on each before it asks for the next."""

    def epoch_loss(self, losses: list[float]) -> float:
        """The loss of an epoch, over all processes, from those of this one's steps."""
        return sum(losses) / len(losses)

    def after_backward(self) -> None:  # noqa: B027
        """Called in each step, when the gradients are computed and before the optimizer uses them."""

    def after_epoch(self, optimizer: torch.optim.Optimizer) -> None:  # noqa: B027
        """Called after the last step of an epoch, before validation."""

    def validate(self) -> Validation:
        """Evaluate the validation nodes on the whole graph; called in evaluation mode and without gradients."""
        logits = None if self.model.labels_at_the_end else self.model(*self.inputs)
        loss = self.model.stopping_loss(self.inputs, logits, self.val)
        return Validation(loss.item(), None if logits is None else accuracy_of(logits, self.val))

    def logits(self) -> Tensor | None:
        """The logits of all nodes, on the CPU; ``None`` in a process that writes no files."""
        logits: Tensor = self.model(*self.inputs)
        return logits.cpu()

    def report(self) -> dict[str, Any] | None:
        """What `parallel.json` tells about the processes, if there is anything to tell."""
        return None


class FullBatch(EpochPlan):
    """An epoch is what the model makes of the whole graph, most often one step."""

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """See :meth:`EpochPlan.losses`."""
        return self.model.losses(self.inputs, self.train)


def accuracy_of(logits: Tensor, labelled: Labelled) -> float:
    """The share of the nodes whose class has the largest logit."""
    return (logits[labelled.nodes].argmax(dim=1) == labelled.classes).double().mean().item()
