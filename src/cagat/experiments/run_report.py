"""A report of finished runs, for people: HTML and Markdown, with pictures."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from cagat.errors import CagatError, ConfigError
from cagat.experiments.figures import draw_curves, empty_figure, rendered
from cagat.experiments.summary import Sample, paired_difference
from cagat.files import atomic_write
from cagat.style import Section, Table, colour, write_report
from cagat.training import RunResult, TrainConfig
from cagat.training.config_file import read_config
from cagat.training.outputs import read_result
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trainer import Epoch

_ACCURACY = (
    "Test accuracy of each run (points), and the mean with its 95 % interval (Student's t); further right is better."
)
_LOSSES = "Loss by epoch: mean and range over the splits, as far as all of them go."
_PAIRED = (
    "Paired over the splits that both have, seed by seed, with the 95 % interval (Student's t). An interval that "
    "contains 0 leaves open which one is better."
)
_ALONE = "There is nothing to compare: that takes two configurations with two splits of the same graph in common."
# Where and how a run was done does not change what it is.
_NOT_COMPARED = ("seed", "data_dir", "device", "threads", "deterministic", "baselines", "tensorboard")


@dataclass(frozen=True)
class FinishedRun:
    """A run with its configuration, its result and its epochs (none for a model with a closed form)."""

    directory: RunDirectory
    config: TrainConfig
    result: RunResult
    history: list[Epoch]

    @classmethod
    def read(cls, path: Path) -> "FinishedRun":
        """Read the files of a run; one that is missing or not finished is an error."""
        directory = RunDirectory(path)
        if not directory.config.exists():
            raise RunError(f"{path}: there is no run. Train one: cagat train --out {path}")
        result = read_result(directory)
        if result is None:
            raise RunError(f"{path}: the run is not finished. Continue it: cagat train --resume {path}")
        if result.test_accuracy is None:
            raise RunError(
                f"{path}: the run has no test nodes, and a report compares test accuracies. Its own estimate is in "
                f"{directory.result}; for a report train with: cagat train --protocol split"
            )
        config = TrainConfig.from_values(read_config(directory.config))
        return cls(directory, config, result, directory.history())


@dataclass(frozen=True)
class RunGroup(Sample):
    """Runs of one configuration, by the seed of their split, and the name that tells it from other groups."""

    name: str
    runs: dict[int, FinishedRun]
    accuracies: dict[int, float]

    @property
    def first(self) -> FinishedRun:
        """One of them; all have the same configuration."""
        return next(iter(self.runs.values()))

    @property
    def splits(self) -> tuple[str, int | None, tuple[object, ...]]:
        """The graph, the labels per class and how else nodes are chosen: if equal, equal seeds are equal splits."""
        config = self.first.config
        chosen = (config.val_labels, config.protocol, config.train_fraction, config.val_fraction)
        return config.dataset, self.first.result.labels_per_class, chosen


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


def grouped(runs: Sequence[FinishedRun]) -> list[RunGroup]:
    """Group runs that differ by their seed alone, in the order in which they were given; none may be there twice."""
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
    names = _names([next(iter(group.values())) for group in members.values()])
    return [
        RunGroup(name, group, {seed: 100 * float(run.result.test_accuracy or 0) for seed, run in group.items()})
        for name, group in zip(names, members.values(), strict=True)
    ]


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


def write_run_report(runs: Sequence[Path], out: Path, command: str) -> list[Path]:
    """Write `OUT.html`, which needs no other file, and `OUT.md` with its pictures; the files that were written.

    Args:
        runs: The directories of finished runs.
        out: The files' common name; an ending of `.html` or `.md` is left out.
        command: The command that is named as the source.

    Raises:
        RunError: A directory holds no finished run.
        ConfigError: Two runs are the same.
    """
    if not out.name:
        raise CagatError(f"--out must name files, but is {str(out)!r}. Give for instance --out report.")
    found = [FinishedRun.read(path) for path in runs]
    groups = grouped(found)
    stem = out.with_suffix("") if out.suffix in (".html", ".md") else out
    pictures = {stem.with_name(f"{stem.name}-accuracy.svg"): ("Accuracy", _ACCURACY, _draw_accuracies(groups))}
    if any(len(run.history) > 1 for run in found):
        pictures[stem.with_name(f"{stem.name}-losses.svg")] = ("Training", _LOSSES, _draw_losses(groups))
    for path, (_, _, svg) in pictures.items():
        atomic_write(path, svg)
    title = f"Report of {len(found)} runs" if len(found) > 1 else f"Report of {found[0].directory.path.name}"
    compared = _compared(groups)
    sections = [
        Section(_configurations(groups), "Configurations", _explained(groups)),
        Section(compared, "Compared", _PAIRED if compared else _ALONE),
        *(Section(path, heading, caption) for path, (heading, caption, _) in pictures.items()),
        Section(_each(found), "Runs", "Every run with the weights of its lowest validation loss."),
    ]
    return [*write_report(stem, title, sections, command), *pictures]


def _explained(groups: list[RunGroup]) -> str:
    if all(len(group.runs) == 1 for group in groups):
        return "Test accuracy in percent, on one split each: other splits may give another picture."
    return "Test accuracy in percent: mean ± standard deviation (n - 1) over n splits, and the mean's 95 % interval."


def _configurations(groups: list[RunGroup]) -> Table:
    head = [
        "configuration", "graph", "labels", "n", "test accuracy", "95 % interval", "validation", "epochs", "seconds",
    ]  # fmt: skip
    rows = []
    for group in groups:
        results, (graph, labels, _) = [run.result for run in group.runs.values()], group.splits
        spread = f" ± {group.std:.2f}" if len(results) > 1 else ""
        interval = f"{group.mean - group.half:.2f} to {group.mean + group.half:.2f}" if spread else ""
        rows.append([
            group.name, Path(graph).name, "given" if labels is None else str(labels),
            str(len(results)), f"{group.mean:.2f}{spread}", interval,
            _percent(statistics.fmean(_or_nan(one.val_accuracy) for one in results)),
            f"{statistics.fmean(one.epochs for one in results):.0f}",
            f"{statistics.fmean(one.seconds for one in results):.1f}",
        ])  # fmt: skip
    return Table(head, rows, words=2)


def _compared(groups: list[RunGroup]) -> Table | None:
    rows = []
    for first, second in combinations(groups, 2):
        comparable = first.splits == second.splits
        if comparable and (difference := paired_difference(first.accuracies, second.accuracies)):
            mean, low, high, n = difference
            interval = f"{low:+.2f} to {high:+.2f}"
            rows.append([first.name, second.name, Path(first.splits[0]).name, f"{mean:+.2f}", interval, str(n)])
    head = ["first", "second", "graph", "first - second", "95 % interval", "splits"]
    return Table(head, rows, words=3) if rows else None


def _each(runs: Sequence[FinishedRun]) -> Table:
    head = ["run", "model", "graph", "seed", "epochs", "best epoch", "validation loss", "validation", "test", "seconds"]
    rows = [
        [
            str(run.directory.path), run.config.model, Path(run.config.dataset).name, str(run.config.seed),
            str(run.result.epochs), str(run.result.best_epoch), f"{_or_nan(run.result.val_loss):.4f}",
            _percent(run.result.val_accuracy), _percent(run.result.test_accuracy), f"{run.result.seconds:.1f}",
        ]
        for run in runs
    ]  # fmt: skip
    return Table(head, rows, words=3)


def _percent(share: float | None) -> str:
    return "" if share is None or math.isnan(share) else f"{100 * share:.2f}"


def _draw_accuracies(groups: list[RunGroup]) -> str:
    """The test accuracy of every run, and the means with their intervals."""
    figure = empty_figure(8, 0.9 + 0.5 * len(groups))
    axes = figure.subplots()
    for number, group in enumerate(groups):
        values = list(group.accuracies.values())
        axes.scatter(values, [number] * len(values), s=18, color=colour(number), alpha=0.45, linewidths=0)
        half = 0 if math.isnan(group.half) else group.half
        axes.errorbar([group.mean], [number], xerr=[half], color=colour(number), marker="D", markersize=7, capsize=4)
    axes.set_yticks(range(len(groups)), [_escaped(f"{group.name} (n={len(group.runs)})") for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel("test accuracy, %")
    return rendered(figure, "svg").decode()


def _draw_losses(groups: list[RunGroup]) -> str:
    """Training and validation loss over the epochs, one line per configuration."""
    figure = empty_figure(9, 3.6)
    for axes, key, title in zip(figure.subplots(1, 2), ("loss", "val_loss"), ("training", "validation"), strict=True):
        for number, group in enumerate(groups):
            histories = [run.history for run in group.runs.values() if run.history]
            # An infinite loss has no place in a picture: it is a gap, as one that is not a number.
            curves = [[_finite(getattr(epoch, key)) for epoch in history] for history in histories]
            if curves:
                draw_curves(axes, curves, colour(number), _escaped(group.name))
        axes.set(title=title, xlabel="epoch", ylabel="loss")
    figure.axes[-1].legend(frameon=False, fontsize=8)
    return rendered(figure, "svg").decode()


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _escaped(text: str) -> str:
    """Text in which matplotlib sees no formulas."""
    return text.replace("$", r"\$")
