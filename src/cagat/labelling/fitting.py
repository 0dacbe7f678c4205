"""The model behind the page: fitted in the background to the labels so far, without anybody waiting for it."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.splits import Split
from cagat.data.tables import sorted_names
from cagat.distributed import World
from cagat.labelling.gain import Gain, Seen, gain_of_more
from cagat.models import Labelled
from cagat.settings import TrainConfig
from cagat.training.calibration import fit_temperature, predicted_shares
from cagat.training.cross_fit import FOLDS, folds_of
from cagat.training.estimate import Estimate, temperature_of
from cagat.training.evidence import Evidence, find_evidence
from cagat.training.make_trainer import make_trainer
from cagat.training.objective import Objective
from cagat.training.problem import Judged, Problem, class_weight, new_model
from cagat.training.trainer import EpochPlan, FullBatch, Trainer

_logger = logging.getLogger(__name__)

WARM_EPOCHS = 50
"""Epochs of a fit from the last weights; tools/warm_starts.py compares it with one anew."""

_CPU = torch.device("cpu")
_NOBODY = Labelled(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


class Fitted(NamedTuple):
    """What a model that was fitted to some labels says.

    Attributes:
        labels: How many labels there were.
        classes: The classes that had any.
        probabilities: Of each class, one row per node.
        evidence: The labelled nodes behind each prediction, if that is cheap to find.
        calibrated: Whether the probabilities were held to labels that the model had not seen.
    """

    labels: int
    classes: list[str]
    probabilities: NDArray[np.float64]
    evidence: Evidence | None
    calibrated: bool


class Estimated(NamedTuple):
    """How right a model with so many labels is: on labelled nodes, each by a model that had not seen its label."""

    labels: int
    accuracy: float
    low: float
    high: float


class Start(NamedTuple):
    """Where the next fit may begin: the labels that a model was fitted to, and its weights."""

    labels: Mapping[int, str]
    weights: dict[str, Tensor]

    def leads_to(self, labels: Mapping[int, str]) -> bool:
        """Whether labels only came, of classes that are known: what went or changed the weights would remember."""
        return self.labels.items() < labels.items() and set(self.labels.values()) == set(labels.values())


class Abandoned(Exception):  # noqa: N818
    """Something more important came up."""


def problem_of(graph: Data, labels: Mapping[int, str], seed: int, *, folds: bool) -> Problem:
    """The graph with these labels as `cagat train --protocol all` has it: every label is for training."""
    classes, labelled = sorted_names(list(set(labels.values()))), graph.clone()
    labelled.y = torch.full((int(graph.num_nodes),), -1)
    nodes = torch.tensor(sorted(labels))
    labelled.y[nodes] = torch.tensor([classes.index(labels[node]) for node in nodes.tolist()])
    labelled.class_names, y, none = classes, labelled.y[nodes], torch.empty(0, dtype=torch.int64)
    weight = class_weight(y, len(classes), "auto")
    return Problem(labelled, Split(nodes, none, none), None, None, "all", folds_of(y, seed) if folds else None, weight)


def fit(
    graph: Data,
    labels: Mapping[int, str],
    config: TrainConfig,
    *,
    folds: bool,
    start: Start | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[Problem, Trainer]:
    """Fit a model to all labels: with folds as `cagat train` does, without them for a fixed number of epochs.

    From a start that leads to these labels fewer epochs do, in which predictions need no time to come to agree.
    `check` is called after each epoch, and may raise.
    """
    problem = problem_of(graph, labels, config.seed, folds=folds)
    if start is not None:
        config = config.model_copy(update={"fixed_epochs": min(config.fixed_epochs, WARM_EPOCHS), "ramp": 0})
    trainer = make_trainer(config, problem, _CPU, World())
    if start is not None:
        trainer.model.load_state_dict(start.weights)
    _run(trainer, check)
    return problem, trainer


def fitted(problem: Problem, trainer: Trainer) -> Fitted:
    """What a trained model says, with probabilities as they come."""
    logits = trainer.logits()
    assert logits is not None
    evidence = find_evidence(trainer.model, trainer.plan.inputs, logits.argmax(dim=1), problem.split.train)
    return Fitted(len(problem.split.train), problem.graph.class_names, _probabilities(logits), evidence, False)


def _probabilities(logits: Tensor, temperature: float = 1.0) -> NDArray[np.float64]:
    return np.asarray((logits.detach().double() / temperature).softmax(dim=1).numpy())


def out_of_fold(problem: Problem, trainer: Trainer, config: TrainConfig, check: Callable[[], None]) -> Judged | None:
    """The logits of all labelled nodes, each by a model that was fitted anew without its fold.

    Nothing if there are too few labels for folds. `check` is as in :func:`fit`.
    """
    train = problem.part("train")
    folds = folds_of(train.classes, config.seed)
    if folds is None:
        return None
    options = config.fit_options()
    objective = Objective.of(options, train, int(problem.graph.num_nodes))
    logits = torch.empty(len(train.nodes), len(problem.graph.class_names))
    for number in range(FOLDS):
        held = folds == number
        model, seen = new_model(config, problem.graph, _CPU), train.some(~held)
        plan: EpochPlan = FullBatch(model, trainer.plan.inputs, seen, _NOBODY, objective)
        other = Trainer(plan, options)
        _run(other, check)
        found = other.logits()
        assert found is not None
        logits[held] = found.detach()[train.nodes[held]]
    return Judged(logits, train.classes)


def _run(trainer: Trainer, check: Callable[[], None] = lambda: None) -> None:
    while not trainer.finished:
        trainer.run_epoch()
        check()
    trainer.finish()


class BackgroundFit:
    """A thread that fits a model to the latest labels, then estimates how right it is if nothing new comes in.

    A fit that was begun is ended, so that somebody who labels fast still sees models; labels that came in meanwhile
    are fitted together. Where it can, it begins at the last weights, which is quick. What follows is abandoned for new
    labels: a fit anew, since on some graphs that is better, and the estimate, which takes several fits.

    Args:
        graph: The graph.
        config: How to fit.
        on_change: Called with nothing whenever :attr:`fitted`, :attr:`curve` or :attr:`status` has changed.
        after_fit: Called by the thread with each new model, before it is estimated.

    Attributes:
        fitted: What the last model says.
        curve: What was estimated, in order.
        gain: What a few more labels gain, if that can be said.
        status: What goes on, as a sentence.
    """

    def __init__(
        self,
        graph: Data,
        config: TrainConfig,
        on_change: Callable[[], None] = lambda: None,
        after_fit: Callable[[Fitted], None] = lambda found: None,
    ) -> None:
        self._graph, self._config, self._on_change, self._after_fit = graph, config, on_change, after_fit
        self.fitted: Fitted | None = None
        self.curve: list[Estimated] = []
        self.gain: Gain | None = None
        self._seen: dict[int, Seen] = {}
        self._start: Start | None = None
        self.status, self.busy = "", False
        self._condition = threading.Condition()
        self._wanted: dict[int, str] | None = None
        self._jobs: list[Callable[[], None]] = []
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="cagat-fit", daemon=True)
        self._thread.start()

    def ask(self, labels: Mapping[int, str]) -> None:
        """Ask for a model of these labels."""
        with self._condition:
            self._wanted, self.busy = dict(labels), True
            self._condition.notify()

    def run(self, job: Callable[[], None]) -> None:
        """Have something else done by the thread, before the next fit."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify()

    def close(self) -> None:
        """End the thread after the epoch that it is at."""
        with self._condition:
            self._ended, self._wanted = True, None
            self._condition.notify()
        self._thread.join(timeout=60)

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._ended or self._wanted is not None or self._jobs)
                if self._ended:
                    return
                job = self._jobs.pop(0) if self._jobs else None
                labels = None
                if job is None:
                    labels, self._wanted = self._wanted, None
            try:
                if job is not None:
                    job()
                elif labels is not None:
                    self._fit(labels)
            except Abandoned:
                with self._condition:
                    if self._wanted is None and not self._ended:  # For a job, after which it is done.
                        self._wanted = labels
            except Exception as error:  # The page goes on without a model, and says why.
                _logger.warning("The model could not be fitted: %s", error)
                self._tell(f"The model could not be fitted: {error}")
            with self._condition:
                self.busy = self._wanted is not None or bool(self._jobs)
            self._on_change()

    def _fit(self, labels: dict[int, str]) -> None:
        if len(set(labels.values())) < 2:
            self.fitted = None
            self._tell("Label nodes of two classes to get a first model.")
            return
        self._tell(f"Fitting a model to {len(labels)} labels ...")
        known = f"The model knows {len(labels)} labels."
        start = self._start if self._start is not None and self._start.leads_to(labels) else None
        problem, trainer = self._fit_from(start, labels, self._check_end)
        if start is not None:
            self._tell(f"{known} Fitting it anew ...")
            problem, trainer = self._fit_from(None, labels, self._check)
        assert self.fitted is not None
        if folds_of(problem.part("train").classes, self._config.seed) is not None:
            self._tell(f"{known} Estimating how right it is ...")
        with torch.random.fork_rng(devices=[]):
            judged = out_of_fold(problem, trainer, self._config, self._check)
        if judged is not None:
            logits = trainer.logits()
            assert logits is not None
            temperature = fit_temperature(judged.logits, judged.classes, predicted_shares(logits))
            self.fitted = self.fitted._replace(probabilities=_probabilities(logits, temperature), calibrated=True)
            found = Estimate.of(judged)
            kept = [one for one in self.curve if one.labels != len(labels)]
            self.curve = [*kept, Estimated(len(labels), found.accuracy, found.low, found.high)]
            right = (judged.logits.argmax(dim=1) == judged.classes).numpy()
            self._seen[len(labels)] = Seen(len(labels), problem.split.train.numpy(), right)
            self.gain = gain_of_more(len(labels), list(self._seen.values()))
        self._tell(known)

    def _fit_from(
        self, start: Start | None, labels: dict[int, str], check: Callable[[], None]
    ) -> tuple[Problem, Trainer]:
        """Fit a model and show what it says."""
        problem, trainer = fit(self._graph, labels, self._config, folds=False, start=start, check=check)
        self._start = Start(labels, trainer.model.state_dict())
        self.fitted = fitted(problem, trainer)
        self._on_change()
        self._after_fit(self.fitted)
        return problem, trainer

    def _check_end(self) -> None:
        if self._ended:
            raise Abandoned

    def _check(self) -> None:
        if self._ended or self._wanted is not None or self._jobs:
            raise Abandoned

    def _tell(self, status: str) -> None:
        self.status = status
        self._on_change()


def final(graph: Data, labels: Mapping[int, str], config: TrainConfig) -> tuple[Problem, Trainer, float]:
    """The model that `cagat train` makes of these labels, and its temperature."""
    problem, trainer = fit(graph, labels, config, folds=True)
    logits = trainer.logits()
    assert logits is not None
    return problem, trainer, temperature_of(problem, trainer, logits)
