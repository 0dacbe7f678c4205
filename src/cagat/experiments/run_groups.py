"""Finished runs, grouped where they differ by their split alone."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cagat.errors import ConfigError
from cagat.experiments.summary import half_interval
from cagat.training import RunResult, TrainConfig
from cagat.training.config_file import read_config
from cagat.training.outputs import read_result
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trainer import Epoch

# Where and how a run was done does not change what it is.
_NOT_COMPARED = ("seed", "data_dir", "device", "threads", "deterministic", "tensorboard")


@dataclass(frozen=True)
class FinishedRun:
    """A run with its configuration, its result and its epochs (none for a model with a closed form)."""

    directory: RunDirectory
    config: TrainConfig
    result: RunResult
    history: list[Epoch]

    @classmethod
    def read(cls, path: Path) -> "FinishedRun":
        """Read the files of a run.

        Raises:
            RunError: There is no run, or it is not finished.
        """
        directory = RunDirectory(path)
        if not directory.config.exists():
            raise RunError(f"{path}: there is no run. Train one: cagat train --out {path}")
        result = read_result(directory)
        if result is None or result.test_accuracy is None:
            raise RunError(f"{path}: the run is not finished. Go on with it: cagat train --resume {path}")
        config = TrainConfig.from_values(read_config(directory.config))
        return cls(directory, config, result, directory.history())


@dataclass(frozen=True)
class RunGroup:
    """Runs of one configuration, by the seed of their split, and the name that tells it from other groups."""

    name: str
    runs: dict[int, FinishedRun]

    @property
    def dataset(self) -> str:
        """The graph."""
        return self._first.config.dataset

    @property
    def labels(self) -> int | None:
        """Training nodes per class; ``None`` if the split came with the graph."""
        return self._first.result.labels_per_class

    @property
    def accuracies(self) -> dict[int, float]:
        """Test accuracy in percent by the seed of the split."""
        return {seed: 100 * float(run.result.test_accuracy or 0) for seed, run in self.runs.items()}

    @property
    def mean(self) -> float:
        """The mean of the test accuracies."""
        return statistics.fmean(self.accuracies.values())

    @property
    def half(self) -> float:
        """Half of its 95 % interval; NaN for a single run."""
        return half_interval(list(self.accuracies.values()))

    def has_splits_of(self, other: "RunGroup") -> bool:
        """Whether equal seeds are equal splits: both are on the same graph with equally many labels."""
        ours, theirs = ((group.dataset, group.labels, group._first.config.val_labels) for group in (self, other))
        return ours == theirs

    @property
    def _first(self) -> FinishedRun:
        return next(iter(self.runs.values()))


def grouped(runs: Sequence[FinishedRun]) -> list[RunGroup]:
    """Group runs that differ by their seed alone, in the order in which they were given.

    Raises:
        ConfigError: Two runs are the same, on the same split.
    """
    members: dict[str, dict[int, FinishedRun]] = {}
    for run in runs:
        values = {key: value for key, value in run.config.values().items() if key not in _NOT_COMPARED}
        group = members.setdefault(repr(sorted(values.items(), key=str)), {})
        if run.config.seed in group:
            other = group[run.config.seed].directory.path
            raise ConfigError(
                f"{run.directory.path} and {other} are the same configuration on the same split. Leave one out."
            )
        group[run.config.seed] = run
    firsts = [next(iter(group.values())) for group in members.values()]
    return [RunGroup(name, group) for name, group in zip(_names(firsts), members.values(), strict=True)]


def _names(runs: Sequence[FinishedRun]) -> list[str]:
    """The model, and whatever else is not the same for all runs of that model."""
    names = []
    for run in runs:
        values = run.config.values()
        others = [other.config.values() for other in runs if other.config.model == run.config.model]
        differing = [
            key
            for key in sorted({key for other in others for key in other})
            if key not in (*_NOT_COMPARED, "model", "dataset", "labels", "val_labels")
            and any(other.get(key) != values.get(key) for other in others)
        ]
        val_labels = {other.get("val_labels") for other in others if other["dataset"] == values["dataset"]}
        # The table has a column that says so where the split came with the graph.
        if len(val_labels) > 1 and values.get("val_labels") is not None:
            differing.append("val_labels")
        names.append(" ".join([run.config.model, *(f"{key}={values.get(key)}" for key in differing)]))
    return names
