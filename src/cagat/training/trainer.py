"""Training, one epoch at a time."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.errors import CagatError, NonFiniteError
from cagat.models import Labelled, NodeClassifier
from cagat.settings import FitOptions
from cagat.training.early_stopping import EarlyStopping
from cagat.training.plans.full_batch import FullBatch, accuracy_of


class Epoch(NamedTuple):
    """What is known after an epoch, numbered from 1.

    ``val_loss`` is the model's loss for early stopping; ``val_accuracy`` is not a number if the model labels nodes only
    at the end.
    """

    number: int
    loss: float
    val_loss: float
    val_accuracy: float


class DivergedError(CagatError, ArithmeticError):
    """The loss is no longer a number."""

    exit_code = 3


_REMEDY = (
    "Try a smaller --lr, another --feature-norm than none, or, with CaGAT, a smaller --xi; and look for very large "
    "values in the features."
)


class Trainer:
    """Trains a model epoch by epoch, so that it can be watched, stopped, saved and resumed between any two.

    It is given the labels of the training and of the validation nodes only, so it cannot read any other.

    Args:
        model: The model.
        inputs: What the model takes: features, edges, and so on.
        train: The training nodes and their classes.
        val: The validation nodes and their classes.
        options: How to fit.
        plan: How an epoch goes over the graph. (default: all of it in every step)

    Attributes:
        optimizer: Adam, or ``None`` for a model that is solved at once.
    """

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        options: FitOptions | None = None,
        plan: FullBatch | None = None,
    ) -> None:
        self.model = model
        self.inputs = inputs
        self.plan = plan or FullBatch(model, inputs, train, val)
        self.options = options or FitOptions()
        self.history: list[Epoch] = []
        self._train = train
        self._stopping = EarlyStopping(self.options.patience)
        self.optimizer: torch.optim.Adam | None = None
        if not model.closed_form:
            groups = model.parameter_groups(self.options.weight_decay)
            self.optimizer = torch.optim.Adam(groups, lr=self.options.lr)

    @property
    def finished(self) -> bool:
        """Whether there is no epoch left to do."""
        limit = 1 if self.model.closed_form else self.options.epochs
        return len(self.history) >= limit or self._stopping.exhausted

    @property
    def best(self) -> Epoch | None:
        """The epoch of the lowest validation loss so far, if there was one."""
        return self.history[self._stopping.best_epoch - 1] if self._stopping.best_epoch else None

    @property
    def last_epoch(self) -> int:
        """The epoch after which training ends if validation improves no more."""
        return min(self.options.epochs, self._stopping.best_epoch + self.options.patience)

    def run_epoch(self) -> Epoch:
        """Train for one epoch and validate.

        Raises:
            DivergedError: The loss is infinite or not a number. If it is the training loss, no step was taken with it.
        """
        number = len(self.history) + 1
        try:
            loss = self._learn(number)
            with torch.no_grad():
                self.model.eval()
                found = self.plan.validate()
        except NonFiniteError as error:
            raise DivergedError(f"The loss became nan in epoch {number}. {_REMEDY} In a layer, {error}.") from error
        val_loss = _checked(found.loss, "validation loss", number)
        epoch = Epoch(number, loss, val_loss, math.nan if found.accuracy is None else found.accuracy)
        self._stopping.update(number, val_loss, self.model)
        self.history.append(epoch)
        return epoch

    def finish(self) -> None:
        """Leave the model with the weights of the best validation loss."""
        self._stopping.restore(self.model)
        if not self.model.closed_form:
            self.model.solve(self.inputs, self._train)
        self.model.eval()

    @torch.no_grad()
    def logits(self) -> Tensor | None:
        """The logits of all nodes, on the CPU; in a process that does not write, nothing."""
        return self.plan.logits()

    def state_dict(self) -> dict[str, Any]:
        """All that the next epoch depends on, as tensors and plain values."""
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        return {
            "model": self.model.state_dict(),
            "training": self.model.training_state(),
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "stopping": self._stopping.state_dict(),
            "history": torch.tensor([epoch[1:] for epoch in self.history], dtype=torch.float64),
            "random": {"cpu": torch.get_rng_state(), "cuda": cuda},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was called: what follows is the same to the bit."""
        self.model.load_state_dict(state["model"])
        self.model.load_training_state(state["training"])
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self._stopping.load_state_dict(state["stopping"])
        self.history = [Epoch(number, *values) for number, values in enumerate(state["history"].tolist(), 1)]
        torch.set_rng_state(state["random"]["cpu"])
        if state["random"]["cuda"]:
            torch.cuda.set_rng_state_all(state["random"]["cuda"])

    def _learn(self, number: int) -> float:
        self.model.train()
        if self.optimizer is None:
            self.model.solve(self.inputs, self._train)
            self.model.eval()
            with torch.no_grad():
                losses = [_checked(loss, "training loss", number) for loss in self.plan.losses(number)]
            return self.plan.mean(losses)
        losses = []
        for loss in self.plan.losses(number):
            value = self.plan.value(loss)
            known = self.plan.every_process_knows_each_loss
            losses.append(_checked(value, "training loss", number) if known else value.item())
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.plan.gradients_are_there()
            self.optimizer.step()
        self.plan.epoch_is_over(self.optimizer)
        return _checked(torch.tensor(self.plan.mean(losses), dtype=torch.float64), "training loss", number)


@torch.no_grad()
def accuracy(model: NodeClassifier, inputs: tuple[Any, ...], labelled: Labelled) -> float:
    """The share of the nodes whose class the model finds."""
    model.eval()
    return accuracy_of(model(*inputs), labelled)


def _checked(loss: Tensor, name: str, epoch: int) -> float:
    value = loss.item()
    if not math.isfinite(value):
        raise DivergedError(f"The {name} became {value} in epoch {epoch}. {_REMEDY}")
    return value
