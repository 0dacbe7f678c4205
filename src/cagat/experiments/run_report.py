"""A report of finished runs, for people: HTML and Markdown, with pictures."""

import html
import math
import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from cagat.errors import CagatError
from cagat.experiments.figures import draw_curves, empty_figure, rendered
from cagat.experiments.run_groups import FinishedRun, RunGroup, grouped
from cagat.experiments.summary import paired_difference
from cagat.files import atomic_write
from cagat.style import Table, colour, inline_svg, page, source_line

_ACCURACY = (
    "Test accuracy of each run (points), and the mean with its 95 % interval (Student's t); further right is better."
)
_LOSSES = "Loss by epoch: mean and range over the splits, as far as all of them go."
_PAIRED = (
    "Paired over the splits that both have, seed by seed, with the 95 % interval (Student's t). An interval that "
    "contains 0 leaves open which one is better."
)
_ALONE = "There is nothing to compare: that takes two configurations with two splits of the same graph in common."


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
    tables = [("Configurations", _explained(groups), _configurations(groups)), ("Compared", *_compared(groups))]
    each = ("Runs", "Every run with the weights of its lowest validation loss.", _each(found))

    title = f"Report of {len(found)} runs" if len(found) > 1 else f"Report of {found[0].directory.path.name}"
    cards = [
        *(_card(heading, caption, "" if table is None else table.html()) for heading, caption, table in tables),
        *(_card(heading, caption, inline_svg(svg)) for heading, caption, svg in pictures.values()),
        _card(*each[:2], each[2].html()),
    ]
    source, page_path, text_path = source_line(command), *(stem.with_name(stem.name + end) for end in (".html", ".md"))
    atomic_write(page_path, page(title, "\n".join([*cards, f"<footer><p>{html.escape(source)}</p></footer>"])))
    sections = [
        *(_section(heading, caption, "" if table is None else table.markdown()) for heading, caption, table in tables),
        *(_section(heading, caption, f"![{heading}]({p.name})") for p, (heading, caption, _) in pictures.items()),
        _section(*each[:2], each[2].markdown()),
    ]
    atomic_write(text_path, "\n\n".join([f"# {title}", *sections, source]) + "\n")
    return [page_path, text_path, *pictures]


def _card(heading: str, caption: str, content: str) -> str:
    return f'<section class="card"><h2>{heading}</h2><p class="soft">{html.escape(caption)}</p>{content}</section>'


def _section(heading: str, caption: str, content: str) -> str:
    return "\n\n".join(filter(None, (f"## {heading}", caption, content)))


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
        accuracies, results = list(group.accuracies.values()), [run.result for run in group.runs.values()]
        spread = f" ± {statistics.stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
        interval = f"{group.mean - group.half:.2f} to {group.mean + group.half:.2f}" if spread else ""
        rows.append([
            group.name, Path(group.dataset).name, "given" if group.labels is None else str(group.labels),
            str(len(results)), f"{group.mean:.2f}{spread}", interval,
            _percent(statistics.fmean(one.val_accuracy for one in results)),
            f"{statistics.fmean(one.epochs for one in results):.0f}",
            f"{statistics.fmean(one.seconds for one in results):.1f}",
        ])  # fmt: skip
    return Table(head, rows, words=2)


def _compared(groups: list[RunGroup]) -> tuple[str, Table | None]:
    rows = []
    for first, second in combinations(groups, 2):
        difference = paired_difference(first.accuracies, second.accuracies) if first.has_splits_of(second) else None
        if difference is not None:
            mean, low, high, n = difference
            interval = f"{low:+.2f} to {high:+.2f}"
            rows.append([first.name, second.name, Path(first.dataset).name, f"{mean:+.2f}", interval, str(n)])
    if not rows:
        return _ALONE, None
    return _PAIRED, Table(["first", "second", "graph", "first - second", "95 % interval", "splits"], rows, words=3)


def _each(runs: Sequence[FinishedRun]) -> Table:
    head = ["run", "model", "graph", "seed", "epochs", "best epoch", "validation loss", "validation", "test", "seconds"]
    rows = [
        [
            str(run.directory.path), run.config.model, Path(run.config.dataset).name, str(run.config.seed),
            str(run.result.epochs), str(run.result.best_epoch), f"{run.result.val_loss:.4f}",
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
