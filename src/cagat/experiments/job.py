"""A run of an experiment, as a record."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

from cagat.experiments.cell import Cell, reported_score
from cagat.experiments.records import digest
from cagat.models import card
from cagat.training import DivergedError, TrainConfig

HISTORY = {"loss", "val_loss_by_epoch"}
"""What a record has besides if the losses of all epochs were wanted."""


@dataclass(frozen=True)
class Job:
    """One run: a model with a preset, and perhaps changes of it, on one split of one graph.

    Attributes:
        method: The name of the model.
        preset: The name of its published configuration.
        cell: The graph, the labels a class and the seed, of the split and of the weights.
        changes: What departs from the preset.
        history: Whether the losses of all epochs are wanted, too.
    """

    method: str
    preset: str
    cell: Cell
    changes: tuple[tuple[str, Any], ...] = ()
    history: bool = False

    def values(self) -> dict[str, Any]:
        """The configuration, as :class:`~cagat.training.TrainConfig` takes it."""
        return {"model": self.method, "preset": self.preset, **dict(self.changes)}

    def asked(self) -> dict[str, Any]:
        """What tells this job from all others: if a preset changes, its jobs are other jobs."""
        return dict(self._asked)

    @cached_property
    def _asked(self) -> dict[str, Any]:
        config = TrainConfig.from_values(self.values())
        asked = {
            "method": self.method,
            "preset": self.preset,
            "changes": dict(self.changes),
            "dataset": self.cell.dataset,
            "labels": self.cell.labels,
            "split_seed": self.cell.seed,
            "initial_seed": self.cell.seed,
            "config": digest({key: config.values()[key] for key in card(self.method).preset(self.preset)}),
        }
        return {**asked, "history": True} if self.history else asked

    def run(self, data_dir: str | None) -> dict[str, Any]:
        """Do it: accuracies, epochs, seconds and versions; a loss that is no number is a result, too."""
        started, cpu_started = time.perf_counter(), time.process_time()
        try:
            found, result = reported_score(self.values(), self.cell, data_dir)
        except DivergedError as error:
            found, result = {"failed": str(error)}, None
        if self.history and result is not None:
            found["loss"] = [epoch.loss for epoch in result.history]
            found["val_loss_by_epoch"] = [epoch.val_loss for epoch in result.history]
        return {
            **found,
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(time.process_time() - cpu_started, 2),
            "versions": {name: version(name) for name in ("cagat", "torch", "torch_geometric")},
        }


def same_work(asked: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What a job does, however it was asked for: first all of it, then what else it answers.

    A change that gives what the preset has anyway is none, and who has the losses of all epochs has the accuracy, too.
    """
    work = tuple(asked.get(key) for key in ("method", "dataset", "labels", "split_seed", "initial_seed", "config"))
    return [(*work, "history"), work] if asked.get("history") else [work]
