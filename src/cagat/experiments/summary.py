"""Runs in numbers: means, and differences over the same splits."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from cagat.data.loading import graph_name
from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.jobs import JobStore, Task


class Difference(NamedTuple):
    """A mean of paired differences, in points, and the ends of its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float
    n: int

    def text(self) -> str:
        """The difference and, in brackets, its interval."""
        return f"{self.mean:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


class Sample:
    """Something with an accuracy in percent for each split, by its seed."""

    accuracies: dict[int, float]

    @property
    def mean(self) -> float:
        """The mean over the splits; NaN if there is none."""
        return statistics.fmean(self.accuracies.values()) if self.accuracies else math.nan

    @property
    def std(self) -> float:
        """The standard deviation of a sample, with n - 1; NaN for fewer than two splits."""
        return statistics.stdev(self.accuracies.values()) if len(self.accuracies) > 1 else math.nan

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the mean; NaN for fewer than two splits."""
        return half_interval(list(self.accuracies.values()))


@dataclass(frozen=True)
class TableCell(Sample):
    """A configuration on a graph with so many labels per class: one test accuracy for each split."""

    row: Row
    dataset: str
    labels: int
    accuracies: dict[int, float]
    failed: int  # How many runs diverged.
    calibration_errors: dict[int, float] = field(default_factory=dict)  # In percent, as far as they were recorded.
    labelled: int | None = None  # How many labels there were in all, if they were not drawn per class.

    @property
    def calibration_error(self) -> float:
        """The mean over the splits; NaN if there is none."""
        return statistics.fmean(self.calibration_errors.values()) if self.calibration_errors else math.nan

    @property
    def place(self) -> tuple[str, int]:
        """The column of the table: the graph and the labels per class."""
        return self.dataset, self.labels

    def minus(self, other: "TableCell") -> Difference | None:
        """The difference to another configuration on the splits that both have; nothing for fewer than two."""
        return paired_difference(self.accuracies, other.accuracies)


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Difference | None:
    """The difference of two figures by seed, on the splits that both have; nothing for fewer than two."""
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        return None
    differences = [ours[seed] - theirs[seed] for seed in seeds]
    mean, half = statistics.fmean(differences), half_interval(differences)
    return Difference(mean, mean - half, mean + half, len(seeds))


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean (Student's t); NaN for fewer than two values."""
    from scipy.special import stdtrit

    n = len(values)
    return float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan


def table_cells(experiment: Experiment, store: JobStore) -> list[TableCell]:
    """All cells of an experiment that have at least one run, row by row."""
    cells = []
    for row, dataset, labels in product(experiment.rows, experiment.datasets, experiment.labels):
        jobs = {seed: experiment.job(row, Task(dataset, labels, seed)) for seed in experiment.seeds(dataset, row)}
        found = {seed: result for seed, job in jobs.items() if (result := store.found(job)) is not None}
        if found:
            accuracies = {seed: 100 * one["test_accuracy"] for seed, one in found.items() if "failed" not in one}
            key = "calibration_error" if row.calibrated else "uncalibrated_error"
            errors = {seed: 100 * one[key] for seed, one in found.items() if key in one}
            labelled = next((one["labelled"] for one in found.values() if "labelled" in one), None)
            failed = len(found) - len(accuracies)
            cells.append(TableCell(row, graph_name(dataset), labels, accuracies, failed, errors, labelled))
    return cells
