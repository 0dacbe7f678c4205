"""A report of finished runs, for people: HTML and Markdown."""

import html
import math
import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from cagat.errors import CagatError
from cagat.experiments.run_figures import draw_accuracies, draw_losses
from cagat.experiments.run_groups import FinishedRun, RunGroup, grouped
from cagat.experiments.summary import paired_difference
from cagat.files import atomic_write
from cagat.style import Table, inline_svg, page, source_line

_ACCURACY = (
    "Test accuracy of each run (points), and the mean with its 95 % interval (Student's t); further right is better."
)
_LOSSES = "Loss by epoch: the mean over the splits, as far as all of them go, and where they all lie."
_PAIRED = (
    "Paired over the splits that both have, seed by seed, with the 95 % interval (Student's t). An interval that "
    "holds 0 leaves open which one is better."
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
    pictures = [("accuracy", "Accuracy", _ACCURACY, draw_accuracies(groups))]
    if any(len(run.history) > 1 for run in found):
        pictures.append(("losses", "Training", _LOSSES, draw_losses(groups)))
    tables = [("Configurations", _explained(groups), _configurations(groups)), ("Compared", *_compared(groups))]
    each = ("Runs", "Every run with the weights of its lowest validation loss.", _each(found))
    images = [stem.with_name(f"{stem.name}-{name}.svg") for name, *_ in pictures]
    for path, (*_, svg) in zip(images, pictures, strict=True):
        atomic_write(path, svg)

    title = "Report of " + (f"{len(found)} runs" if len(found) > 1 else str(found[0].directory.path.name))
    cards = [_card(*table) for table in tables]
    cards += [_card(heading, caption, None, svg) for _, heading, caption, svg in pictures]
    cards.append(_card(*each))
    source = source_line(command)
    body = "\n".join([*cards, f"<footer><p>{html.escape(source)}</p></footer>"])
    atomic_write(stem.with_name(f"{stem.name}.html"), page(title, body))

    sections = [_section(*table) for table in tables]
    for path, (_, heading, caption, _svg) in zip(images, pictures, strict=True):
        sections.append(f"## {heading}\n\n{caption}\n\n![{heading}]({path.name})")
    sections.append(_section(*each))
    atomic_write(stem.with_name(f"{stem.name}.md"), "\n\n".join([f"# {title}", *sections, source]) + "\n")
    return [stem.with_name(f"{stem.name}.html"), stem.with_name(f"{stem.name}.md"), *images]


def _card(heading: str, caption: str, table: Table | None, picture: str = "") -> str:
    content = inline_svg(picture) if table is None else table.html()
    return f'<section class="card"><h2>{heading}</h2><p class="soft">{html.escape(caption)}</p>{content}</section>'


def _section(heading: str, caption: str, table: Table | None) -> str:
    return f"## {heading}\n\n{caption}" + ("" if table is None else f"\n\n{table.markdown()}")


def _explained(groups: list[RunGroup]) -> str:
    if all(len(group.runs) == 1 for group in groups):
        return "Test accuracy in percent, of one split each: other splits may say otherwise."
    return "Test accuracy in percent: mean ± standard deviation (n - 1) over n splits, and the mean's 95 % interval."


def _configurations(groups: list[RunGroup]) -> Table:
    head = [
        "configuration",
        "graph",
        "labels",
        "n",
        "test accuracy",
        "95 % interval",
        "validation",
        "epochs",
        "seconds",
    ]
    rows = []
    for group in groups:
        accuracies, results = list(group.accuracies.values()), [run.result for run in group.runs.values()]
        spread = f" ± {statistics.stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
        interval = f"{group.mean - group.half:.2f} to {group.mean + group.half:.2f}" if spread else ""
        rows.append([
            group.name, _graph(group.dataset), "given" if group.labels is None else str(group.labels),
            str(len(results)), f"{group.mean:.2f}{spread}", interval,
            _percent(statistics.fmean(one.val_accuracy for one in results)),
            f"{statistics.fmean(one.epochs for one in results):.0f}",
            f"{statistics.fmean(one.seconds for one in results):.1f}",
        ])  # fmt: skip
    return Table(head, rows, words=2)


def _compared(groups: list[RunGroup]) -> tuple[str, Table | None]:
    rows = []
    for ours, theirs in combinations(groups, 2):
        difference = paired_difference(ours.accuracies, theirs.accuracies) if ours.same_place(theirs) else None
        if difference is not None:
            mean, low, high, n = difference
            rows.append([
                ours.name, theirs.name, _graph(ours.dataset), f"{mean:+.2f}", f"{low:+.2f} to {high:+.2f}", str(n),
            ])  # fmt: skip
    if not rows:
        return _ALONE, None
    return _PAIRED, Table(["this", "less that", "graph", "points", "95 % interval", "splits"], rows, words=3)


def _each(runs: Sequence[FinishedRun]) -> Table:
    head = ["run", "model", "graph", "seed", "epochs", "best epoch", "validation loss", "validation", "test", "seconds"]
    rows = [
        [
            str(run.directory.path), run.config.model, _graph(run.config.dataset), str(run.config.seed),
            str(run.result.epochs), str(run.result.best_epoch), f"{run.result.val_loss:.4f}",
            _percent(run.result.val_accuracy), _percent(run.result.test_accuracy), f"{run.result.seconds:.1f}",
        ]
        for run in runs
    ]  # fmt: skip
    return Table(head, rows, words=3)


def _percent(share: float | None) -> str:
    return "" if share is None or math.isnan(share) else f"{100 * share:.2f}"


def _graph(dataset: str) -> str:
    """A path is shown by its last part."""
    return Path(dataset).name
