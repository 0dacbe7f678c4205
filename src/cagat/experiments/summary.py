"""Runs in numbers: means, and differences over the same splits."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cagat.experiments.cell import Cell
from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.job import Job
from cagat.experiments.job_store import JobStore


class Difference(NamedTuple):
    """A mean of paired differences, in points, and the ends of its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float
    n: int

    def text(self, digits: int = 1) -> str:
        """The difference and, in brackets, its interval."""
        return f"{self.mean:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Attributes:
        row: The configuration.
        dataset: The graph.
        labels: Training nodes a class.
        accuracies: Test accuracy in percent by the seed of the split.
        failed: How many runs ended without a number.
    """

    row: Row
    dataset: str
    labels: int
    accuracies: dict[int, float]
    failed: int

    @property
    def mean(self) -> float:
        """The mean over the splits."""
        return statistics.fmean(self.accuracies.values()) if self.accuracies else math.nan

    @property
    def std(self) -> float:
        """The standard deviation of a sample: with n - 1."""
        return statistics.stdev(self.accuracies.values()) if len(self.accuracies) > 1 else math.nan

    def minus(self, other: "Entry") -> Difference | None:
        """The difference to another configuration on the splits that both have; nothing below two of them."""
        return paired_difference(self.accuracies, other.accuracies)


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Difference | None:
    """The difference of two figures on the splits, given by seed, that both have; nothing below two of them."""
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        return None
    differences = [ours[seed] - theirs[seed] for seed in seeds]
    mean, half = statistics.fmean(differences), half_interval(differences)
    return Difference(mean, mean - half, mean + half, len(seeds))


def half_interval(values: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean (Student's t); not a number below two values."""
    from scipy.stats import t

    n = len(values)
    return float(t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan


def entries(experiment: Experiment, store: JobStore) -> list[Entry]:
    """All cells of an experiment that have at least one run, row by row."""
    found = []
    for row in experiment.rows:
        for dataset in experiment.datasets:
            for labels in experiment.labels:
                entry = _entry(experiment, store, row, dataset, labels)
                if entry.accuracies or entry.failed:
                    found.append(entry)
    return found


def _entry(experiment: Experiment, store: JobStore, row: Row, dataset: str, labels: int) -> Entry:
    accuracies, failed = {}, 0
    for seed in experiment.seeds(dataset):
        job = Job(row.method, row.preset, Cell(dataset, labels, seed), row.changes, experiment.history)
        record = store.found(job)
        if record is None:
            continue
        if "failed" in record:
            failed += 1
        else:
            accuracies[seed] = 100 * record["test_accuracy"]
    return Entry(row, dataset, labels, accuracies, failed)
