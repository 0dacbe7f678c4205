"""Training with early stopping, one epoch at a time; a plan says how an epoch goes over the graph."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from inspect import unwrap
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.errors import CagatError, ConfigError, NonFiniteError
from cagat.models import Labelled, NodeClassifier
from cagat.settings import FitOptions
from cagat.training.objective import Objective


class Validation(NamedTuple):
    """Loss and accuracy on the validation nodes; NaN if there are none, the accuracy also before a model labels any."""

    loss: float
    accuracy: float


class EpochPlan(ABC):
    """How an epoch goes over the graph: which losses it takes steps on, and how it is validated.

    In each epoch the trainer asks for :meth:`losses`, one at a time. It computes the gradients of a loss, calls
    :meth:`after_backward` and takes a step; after the last step it calls :meth:`after_epoch`, then :meth:`validate`.
    """

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        objective: Objective | None = None,
    ) -> None:
        self.model = model
        self.inputs = inputs
        self.train = train
        self.val = val
        self.objective = objective or Objective()
        self.has_validation = val.nodes.numel() > 0

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
        return Validation(loss.item(), math.nan if logits is None else accuracy_of(logits, self.val))

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
        if self.model.has_own_losses:
            yield from self.model.losses(self.inputs, self.train)
        else:
            predictions = self.objective.predict(self.model, self.inputs)
            yield self.objective.loss(predictions, self.train.loss, epoch)


class Epoch(NamedTuple):
    """What is known after an epoch, numbered from 1.

    ``val_loss`` is the model's loss for early stopping; it is not a number without validation nodes. Nor is
    ``val_accuracy`` then, or if the model labels nodes only at the end.
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


class Adam(torch.optim.Adam):
    """torch's Adam without the guards that import torch's compiler, for a second, when they are first called."""

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))
    zero_grad = unwrap(torch.optim.Adam.zero_grad)


class Trainer:
    """Trains a model epoch by epoch, so that it can be watched, stopped, saved and resumed between any two.

    It keeps the weights of the lowest validation loss; without validation nodes, or if they are not to decide, it
    trains for a fixed number of epochs and keeps the last. It is given the labels of the training and of the validation
    nodes only, so it cannot read any other.

    Attributes:
        best: The epoch whose weights are kept, if there was any.
        optimizer: Adam, or ``None`` for a model with a closed form.
    """

    def __init__(self, plan: EpochPlan, options: FitOptions | None = None) -> None:
        self.plan = plan
        self.model = plan.model
        self.options = options or FitOptions()
        self.history: list[Epoch] = []
        self.best: Epoch | None = None
        self._best_weights: dict[str, Tensor] = {}
        groups = self.model.parameter_groups(self.options.weight_decay)
        if not self.model.has_own_losses:  # These may not be about the labels.
            groups = [group | {"weight_decay": plan.objective.decay * group["weight_decay"]} for group in groups]
        self.optimizer = None if self.model.closed_form else Adam(groups, lr=self.options.lr)

    @property
    def last_epoch(self) -> int:
        """The epoch after which training ends if validation improves no more."""
        if self.model.closed_form:
            return 1
        if not self.validation_decides:
            return min(self.options.epochs, self.options.fixed_epochs)
        best = 0 if self.best is None else self.best.number
        return min(self.options.epochs, best + self.options.patience)

    @property
    def has_validation(self) -> bool:
        """Whether there is anything to validate on."""
        return self.plan.has_validation or self.model.labels_at_the_end

    @property
    def validation_decides(self) -> bool:
        """Whether validation picks the epoch whose weights are kept."""
        return self.has_validation and (self.options.stopping != "none" or self.model.labels_at_the_end)

    @property
    def finished(self) -> bool:
        """Whether there is no epoch left to do."""
        return len(self.history) >= self.last_epoch

    def run_epoch(self) -> Epoch:
        """Train for one epoch and validate."""
        number = len(self.history) + 1
        try:
            loss = self._learn(number)
            with torch.no_grad():
                found = self._validate()
        except NonFiniteError as error:
            raise DivergedError(f"The loss became nan in epoch {number}. {_REMEDY} In a layer, {error}.") from error
        val_loss = _finite(found.loss, "validation loss", number) if self.has_validation else math.nan
        epoch = Epoch(number, loss, val_loss, found.accuracy)
        self.history.append(epoch)
        if self.best is None or self._rank(epoch) < self._rank(self.best):
            self.best = epoch
            self._keep_best()
        return epoch

    def _rank(self, epoch: Epoch) -> float:
        """The lowest is the best."""
        return epoch.val_loss if self.validation_decides else -epoch.number

    def _validate(self) -> Validation:
        self.model.eval()
        return self.plan.validate() if self.has_validation else Validation(math.nan, math.nan)

    def _keep_best(self) -> None:
        # state_dict() alone gives the live tensors, which the next step would change: clone them.
        self._best_weights = {name: weight.clone() for name, weight in self.model.state_dict().items()}

    def _learn(self, number: int) -> float:
        self.model.train()
        if self.optimizer is None:
            self.model.solve(self.plan.inputs, self.plan.train)
            self.model.eval()
            with torch.no_grad():
                losses = [loss.item() for loss in self.plan.losses(number)]
        else:
            losses = []
            for loss in self.plan.losses(number):
                losses.append(loss.item())
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.plan.after_backward()
                self.optimizer.step()
            self.plan.after_epoch(self.optimizer)
        return _finite(self.plan.epoch_loss(losses), "training loss", number)

    def finish(self) -> None:
        """Leave the model with the weights of the best validation loss."""
        self.model.load_state_dict(self._best_weights)
        if not self.model.closed_form:
            self.model.solve(self.plan.inputs, self.plan.train)
        self.model.eval()

    @torch.no_grad()
    def logits(self) -> Tensor | None:
        """The logits of all nodes, on the CPU; ``None`` in a process that writes no files."""
        return self.plan.logits()

    def state_dict(self) -> dict[str, Tensor]:
        """All that the next epoch depends on, as tensors by name."""
        generators = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            generators |= {f"cuda.{number}": state for number, state in enumerate(torch.cuda.get_rng_state_all())}
        history = torch.tensor([epoch[1:] for epoch in self.history], dtype=torch.float64).view(-1, 3)
        return {"history": history, **self.learnt(), **_prefixed(best=self._best_weights, random=generators)}

    def learnt(self) -> dict[str, Tensor]:
        """What steps have changed: the weights, what the model carries along, and Adam's moments."""
        moments = {} if self.optimizer is None else self.optimizer.state_dict()["state"]
        by_name = {f"{key}.{name}": one for key, state in moments.items() for name, one in state.items()}
        return _prefixed(model=self.model.state_dict(), training=self.model.training_state(), optimizer=by_name)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on where :meth:`state_dict` was called: what follows is the same to the bit."""
        self.load_learnt(state)
        self._best_weights = _named(state, "best")
        self.history = [Epoch(number, *values) for number, values in enumerate(state["history"].tolist(), 1)]
        self.best = min(self.history, key=self._rank, default=None)
        random = _named(state, "random")
        torch.set_rng_state(random.pop("cpu"))
        if random:
            torch.cuda.set_rng_state_all([random[f"cuda.{number}"] for number in range(len(random))])

    def load_learnt(self, state: Mapping[str, Tensor]) -> None:
        """Take back what :meth:`learnt` gave."""
        self.model.load_state_dict(_named(state, "model"))
        self.model.load_training_state(_named(state, "training"))
        if self.optimizer is not None:
            moments: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _named(state, "optimizer").items():
                number, _, moment = name.partition(".")
                moments.setdefault(int(number), {})[moment] = tensor
            # Adam's settings are those of the configuration.
            settings = self.optimizer.state_dict()["param_groups"]
            self.optimizer.load_state_dict({"state": moments, "param_groups": settings})


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

    Args:
        model: The model.
        inputs: What the model takes: features, edges, and so on.
        train: The training nodes and their classes.
        val: The validation nodes and their classes.
        options: How to fit.
        on_epoch: Called after each epoch.

    Raises:
        ConfigError: The model has a training of its own, but another objective was asked for.
    """
    if options is not None and options.objective != "supervised" and (model.has_own_losses or model.closed_form):
        raise ConfigError(
            f"{type(model).__name__} has a training of its own, so the objective {options.objective} cannot be had "
            "with it. Leave the objective out."
        )
    objective = None if options is None else Objective.of(options, train, int(inputs[0].shape[0]) if inputs else 0)
    trainer = Trainer(FullBatch(model, inputs, train, val, objective), options)
    while not trainer.finished:
        epoch = trainer.run_epoch()
        if on_epoch is not None:
            on_epoch(epoch)
    trainer.finish()
    assert trainer.best is not None
    return FitResult(trainer.history, trainer.best)


def accuracy_of(logits: Tensor, labelled: Labelled) -> float:
    """The share of the nodes whose class has the largest logit."""
    return (logits[labelled.nodes].argmax(dim=1) == labelled.classes).double().mean().item()


@torch.no_grad()
def accuracy(model: NodeClassifier, inputs: tuple[Any, ...], labelled: Labelled) -> float:
    """The share of the nodes whose class the model finds."""
    model.eval()
    return accuracy_of(model(*inputs), labelled)


def _finite(loss: float, name: str, epoch: int) -> float:
    if not math.isfinite(loss):
        raise DivergedError(f"The {name} became {loss} in epoch {epoch}. {_REMEDY}")
    return loss


def _prefixed(**groups: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{group}.{name}": one for group, tensors in groups.items() for name, one in tensors.items()}


def _named(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(f"{prefix}."): tensor for name, tensor in state.items() if name.startswith(f"{prefix}.")}
