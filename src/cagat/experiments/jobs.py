"""The runs of an experiment, each done once, by any number of processes that share a directory."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import filelock
import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.loading import graph_name, is_name
from cagat.data.splits import Split
from cagat.errors import CagatError, DatasetError
from cagat.experiments.records import Records, digest
from cagat.experiments.search_splits import paper_split, search_split
from cagat.files import disk_errors
from cagat.models import Labelled, NodeClassifier, card
from cagat.settings import CONSISTENT, READING
from cagat.training import DivergedError, FitResult, TrainConfig, fit
from cagat.training.calibration import expected_calibration_error, fit_temperature, predicted_shares
from cagat.training.compute import computing
from cagat.training.objective import FEW, LARGEST_ALIGNMENT, MANY
from cagat.training.problem import class_weight, fresh_model, graph_digest, load_graph
from cagat.training.trainer import accuracy_of

_HISTORY = ("loss", "val_loss_by_epoch")


class Task(NamedTuple):
    """A graph, the number of labels per class (for a search perhaps none), and the seed of split and weights."""

    dataset: str
    labels: int | None
    seed: int


class Fitted(NamedTuple):
    """A fitted model, and what it was fitted on."""

    model: NodeClassifier
    inputs: tuple[Any, ...]
    graph: Data
    split: Split
    result: FitResult

    def scores(self, *parts: str) -> dict[str, Any]:
        """The accuracy on these parts ("val", "test") with the weights of the best epoch, and how the fit went."""
        best, found, logits = self.result.best, {}, self.logits()
        for part in parts:
            nodes = getattr(self.split, part)
            if len(nodes):
                found[f"{part}_accuracy"] = accuracy_of(logits, Labelled(nodes, self.graph.y[nodes]))
        val_loss = None if math.isnan(best.val_loss) else best.val_loss
        return {**found, "val_loss": val_loss, "epochs": len(self.result.history), "best_epoch": best.number}

    def calibration(self) -> dict[str, float]:
        """The temperature from the validation nodes, and the calibration error on the test nodes with and without."""
        logits, (_, val, test) = self.logits().double(), self.split
        temperature = fit_temperature(logits[val], self.graph.y[val], predicted_shares(logits))
        errors = [
            expected_calibration_error((logits[test] / divisor).softmax(dim=1), self.graph.y[test])
            for divisor in (temperature, 1.0)
        ]
        return {"temperature": temperature, "calibration_error": errors[0], "uncalibrated_error": errors[1]}

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Of all nodes, with the weights of the best epoch."""
        self.model.eval()
        with computing(threads=1, deterministic=False):
            logits: Tensor = self.model(*self.inputs)
        return logits


def fit_task(
    values: dict[str, Any], task: Task, data_dir: str | None, draw: Callable[..., Split] = paper_split
) -> Fitted:
    """Fit a configuration on one split, without a look at the labels of test nodes.

    `draw` gets the graph, the numbers of training and validation nodes per class, and the seed.

    On one thread: results then do not depend on how many processes work side by side, and two threads that share a
    busy core are slower than one.
    """
    config = TrainConfig.from_values({**values, **task._asdict()})
    graph = cached_graph(task.dataset, data_dir, reading(config))
    split = draw(graph, task.labels, config.val_labels, task.seed)
    with computing(threads=1, deterministic=False), torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        model, inputs = fresh_model(config, graph, torch.device("cpu"))
        train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
        weight = class_weight(train.classes, len(graph.class_names), config.class_weight)
        train = train._replace(class_weight=weight)
        return Fitted(model, inputs, graph, split, fit(model, inputs, train, val, config.fit_options()))


def validation_scores(values: dict[str, Any], task: Task, data_dir: str | None) -> dict[str, Any]:
    """What a search may see of a fit: nothing here looks at a test label."""
    return fit_task(values, task, data_dir, search_split).scores("val")


def reading(config: TrainConfig) -> tuple[tuple[str, str], ...]:
    """What a configuration says of how the tables of its graph are read."""
    return tuple((key, value) for key, value in config.values().items() if key in READING)


@lru_cache(maxsize=4)
def cached_graph(dataset: str, data_dir: str | None, reading: tuple[tuple[str, str], ...]) -> Data:
    """A graph; the last few are kept."""
    return load_graph(dataset, data_dir, TrainConfig.from_values(dict(reading)))


@dataclass(frozen=True)
class Job:
    """One run: a model with a preset, perhaps changed, on one split of one graph."""

    method: str  # The name of the model.
    preset: str
    task: Task
    changes: tuple[tuple[str, Any], ...] = ()  # What departs from the preset.
    history: bool = False  # Whether the losses of all epochs are recorded, too.

    def values(self) -> dict[str, Any]:
        """The configuration, as :class:`~cagat.training.TrainConfig` takes it."""
        return {"model": self.method, "preset": self.preset, **dict(self.changes)}

    @cached_property
    def asked(self) -> dict[str, Any]:
        """What tells this job from all others; a preset that changes makes other jobs."""
        asked: dict[str, Any] = {
            "method": self.method,
            "preset": self.preset,
            "changes": dict(self.changes),
            "dataset": graph_name(self.task.dataset),
            "labels": self.task.labels,
            "split_seed": self.task.seed,
            "initial_seed": self.task.seed,
            "config": _config_digest(self.method, self.preset, self.changes, (LARGEST_ALIGNMENT, FEW)),
        }
        if (self.task.labels or 0) > MANY:  # Then the weight decay depends on them.
            asked["many"] = MANY
        if self.has_own_graph:
            graph = cached_graph(self.task.dataset, None, ())
            asked["graph"] = graph_digest(graph, graph.y)
        return {**asked, "history": True} if self.history else asked

    @property
    def has_own_graph(self) -> bool:
        """Whether the graph is a file that is there, and not one of the catalogue."""
        return not is_name(self.task.dataset) and Path(self.task.dataset).exists()

    @property
    def can_run(self) -> bool:
        """Whether the graph is at hand, or can be had."""
        return is_name(self.task.dataset) or self.has_own_graph

    @property
    def _draw(self) -> Callable[..., Split]:
        # The paper's graphs have no small classes, so that one there would be a mistake.
        return partial(paper_split, keep_small=not is_name(self.task.dataset))

    def require_drawable_split(self, data_dir: str | None) -> None:
        """Raise a DatasetError unless the graph can be loaded and has enough labelled nodes."""
        config, graph = TrainConfig.from_values(self.values()), cached_graph(self.task.dataset, data_dir, ())
        try:
            self._draw(graph, self.task.labels, config.val_labels, self.task.seed)
        except DatasetError as error:
            raise DatasetError(f"{self.task.dataset} with --labels {self.task.labels}: {error}") from error

    def run(self, data_dir: str | None) -> dict[str, Any]:
        """Do it: accuracies, epochs, seconds and versions. A loss that diverges is a result, too."""
        started, cpu_started = time.perf_counter(), time.process_time()
        found: dict[str, Any]
        try:
            found = self.scores(self.fit(data_dir))
        except DivergedError as error:
            found = {"failed": str(error)}
        return {
            **found,
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(time.process_time() - cpu_started, 2),
            "versions": {name: version(name) for name in ("cagat", "torch", "torch_geometric")},
        }

    def fit(self, data_dir: str | None) -> Fitted:
        """Fit the model."""
        return fit_task(self.values(), self.task, data_dir, self._draw)

    def scores(self, fitted: Fitted) -> dict[str, Any]:
        """What is recorded of a fit."""
        found = fitted.scores("test", "val") | fitted.calibration()
        if self.history:
            found["loss"] = [epoch.loss for epoch in fitted.result.history]
            found["val_loss_by_epoch"] = [epoch.val_loss for epoch in fitted.result.history]
        return found


class JobStore:
    """The records of an experiment, and who is at work on what.

    A job is claimed by a lock on a file, which the system releases when its owner dies, so no claim goes stale. On
    several machines the directory must be on a file system whose locks hold for all of them, such as NFS 4.

    Args:
        directory: The directory of the results, shared by all experiments: what one has done, another need not do.
        experiment: The name of the experiment, whose records are in `EXPERIMENT.jsonl`.
    """

    def __init__(self, directory: Path, experiment: str) -> None:
        self.directory = directory
        self.records = Records(directory / f"{experiment}.jsonl")
        self._files = {self.records.path: self.records}
        self._done: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._indexed: Counter[Path] = Counter()
        self._refresh()

    def found(self, job: Job) -> dict[str, Any] | None:
        """The result of a job, if it, or one that does the same, was done, in this experiment or in another.

        Raises:
            CagatError: A record is damaged.
        """
        for records in self._files.values():
            for record in islice(records, self._indexed[records.path], None):
                # A search may keep its fits in the same directory.
                if "method" in record["asked"]:
                    self._index(record["asked"], record["found"], records.path)
            self._indexed[records.path] = len(records)
        found = self._done.get((*_work(job.asked), job.history))
        if found is None or job.history:
            return found
        return {key: value for key, value in found.items() if key not in _HISTORY}

    def _index(self, asked: dict[str, Any], found: dict[str, Any], path: Path) -> None:
        try:
            sound = 0 <= found["seconds"] < 1e12 and ("failed" in found or 0 <= found["test_accuracy"] <= 1)
            # A run with the losses of all epochs has the accuracy, too.
            for history in {False, bool(asked.get("history"))}:
                self._done.setdefault((*_work(asked), history), found)
                # For tables that are made where the file of the graph is not at hand: what was found last.
                if "graph" in asked:
                    by_name = (*_work({**asked, "graph": None}), history)
                    self._done[by_name] = found
        except (KeyError, TypeError):
            sound = False
        if not sound:
            raise CagatError(
                f"{path}: a record is damaged: it must have seconds, and a test_accuracy from 0 to 1. Remove its line "
                f"(asked: {asked!r:.300}); it is done again."
            )

    def work(self, jobs: list[Job], data_dir: str | None) -> None:
        """Do the jobs that nobody has done and nobody is at work on; what another experiment did is taken over."""
        for job in jobs:
            self.records.refresh()
            if self.records.get(job.asked) is not None:
                continue
            claim = self._claim(job)
            if claim is None:
                continue
            with claim:
                # Somebody may have finished it between our look and our claim, for this experiment or for another.
                self._refresh()
                if self.records.get(job.asked) is None:
                    self.records.add(job.asked, self.found(job) or job.run(data_dir))

    def _refresh(self) -> None:
        """Read what was done meanwhile, for this experiment and for others."""
        for path in sorted(self.directory.glob("*.jsonl")):
            if path in self._files:
                self._files[path].refresh()
            else:
                self._files[path] = Records(path)

    def _claim(self, job: Job) -> AbstractContextManager[object] | None:
        """A lock that is released at the end; none if another process has it."""
        path = self.directory / ".claims" / f"{digest(job.asked)}.lock"
        try:
            with disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                return filelock.FileLock(path, timeout=0).acquire()
        except filelock.Timeout:
            return None


@lru_cache(maxsize=256)
def _config_digest(
    method: str, preset: str, changes: tuple[tuple[str, Any], ...], alignment_rule: tuple[float, float]
) -> str:
    """What tells a configuration from others; the jobs of all splits share it."""
    config = TrainConfig.from_values({"model": method, "preset": preset, **dict(changes)}).values()
    # Also what no preset has, such as the number of validation nodes: it makes another run.
    keys = {**card(method).preset(preset), **dict(changes)}
    if config["objective"] == "consistent":
        keys |= dict.fromkeys((*CONSISTENT, "stopping", "fixed_epochs", "alignment_rule"))
        config["alignment_rule"] = alignment_rule
    return digest({key: config.get(key) for key in keys})


def _work(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a job computes, however it was asked for: a change to the value that the preset has is none."""
    keys = ("method", "dataset", "graph", "labels", "many", "split_seed", "initial_seed", "config", "strategy")
    return tuple(asked.get(key) for key in keys)
