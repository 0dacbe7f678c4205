"""Tables as files: CSV for machines, Markdown and HTML for people."""

import csv
import html
import io
from collections.abc import Sequence
from pathlib import Path

from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.paper import reported
from cagat.experiments.summary import Difference, Entry
from cagat.files import atomic_write
from cagat.models import card
from cagat.style import Table, inline_svg, page, source_line


def write_tables(
    experiment: Experiment, entries: list[Entry], directory: Path, command: str, pictures: Sequence[Path] = ()
) -> list[Path]:
    """Write the tables of an experiment; the files that were written.

    Args:
        experiment: The experiment.
        entries: Its cells.
        directory: Where to.
        command: The command that is named as the source.
        pictures: Pictures of it that were drawn there already; those in SVG go into the pages.
    """
    drawn = [path for path in pictures if path.suffix == ".svg"]
    stem = directory / experiment.name
    texts = {
        stem.with_suffix(".csv"): _csv(experiment, entries),
        stem.with_suffix(".md"): _markdown(experiment, entries, command, drawn),
        stem.with_suffix(".html"): _html(experiment, entries, command, drawn),
    }
    for path, text in texts.items():
        atomic_write(path, text)
    return list(texts)


RIVALS = {"gat": "GAT", "appnp": "APPNP"}
"""Whom CaGAT is compared with, split by split, where they are in the same table."""


def rival(entry: Entry, entries: list[Entry], method: str) -> Entry | None:
    """Whom of this method a CaGAT is compared with: the one of the same preset, or else its own default one."""
    if entry.row.method != "cagat":
        return None
    own = card(method)
    preset = entry.row.preset if entry.row.preset in own.presets else own.default
    for other in entries:
        same_place = (other.dataset, other.labels) == (entry.dataset, entry.labels)
        if same_place and other.row == Row(method, preset):
            return other
    return None


def _csv(experiment: Experiment, entries: list[Entry]) -> str:
    # With more places than anybody shows, so that what is rounded from here is not rounded twice.
    keys = sorted({key for entry in entries for key, _ in entry.row.changes})
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([
        "method", "preset", *keys, "dataset", "labels_per_class", "mean", "std", "n", "failed",
        "paper_mean", "paper_std", *(f"minus_{method}{end}" for method in RIVALS for end in ("", "_low", "_high")),
    ])  # fmt: skip
    for entry in entries:
        changes, published = dict(entry.row.changes), reported(experiment.name, entry.row, entry.dataset, entry.labels)
        differences = [_difference(entry, entries, method) for method in RIVALS]
        writer.writerow([
            entry.row.method, entry.row.preset, *(changes.get(key, "") for key in keys), entry.dataset, entry.labels,
            f"{entry.mean:.4f}", f"{entry.std:.4f}", len(entry.accuracies), entry.failed,
            *((published.mean, published.std) if published else ("", "")),
            *(end for difference in differences for end in _ends(difference)),
        ])  # fmt: skip
    return lines.getvalue()


def _ends(difference: Difference | None) -> list[str]:
    return [f"{value:.4f}" for value in difference[:3]] if difference else ["", "", ""]


def _difference(entry: Entry, entries: list[Entry], method: str) -> Difference | None:
    other = rival(entry, entries, method)
    return None if other is None else entry.minus(other)


_MOST_COLUMNS = 8


def _tables(experiment: Experiment, entries: list[Entry]) -> list[Table]:
    """The tables that people read: one, or if it were too wide one for each graph and what was made of it."""
    places = [
        (dataset, labels)
        for dataset in experiment.datasets
        for labels in experiment.labels
        if any((entry.dataset, entry.labels) == (dataset, labels) for entry in entries)
    ]
    if len(places) <= _MOST_COLUMNS:
        return [_table(experiment, entries, places)]
    names = dict.fromkeys(dataset.partition(":")[0] for dataset, _ in places)
    return [
        _table(experiment, entries, [place for place in places if place[0].partition(":")[0] == name]) for name in names
    ]


def _table(experiment: Experiment, entries: list[Entry], places: Sequence[tuple[str, int]]) -> Table:
    """A line a configuration, a column a graph and labels."""
    by_place = {(entry.row, entry.dataset, entry.labels): entry for entry in entries}
    head = ["method", "preset", *(f"{dataset}, {labels} label{'s' * (labels != 1)}" for dataset, labels in places)]
    lines = []
    for row in experiment.rows:
        cells = [by_place.get((row, *place)) for place in places]
        if any(cells):
            changes = ", ".join(f"{key}={value}" for key, value in row.changes)
            lines.append([row.method, " ".join(filter(None, (row.preset, changes))), *map(_cell, cells)])
            lines += _further_lines(experiment, row, places, cells, entries)
    return Table(head, lines, words=2)


def _further_lines(
    experiment: Experiment,
    row: Row,
    places: Sequence[tuple[str, int]],
    cells: Sequence[Entry | None],
    entries: list[Entry],
) -> list[list[str]]:
    """The paper's figures, and for CaGAT the paired differences to GAT and to APPNP."""
    lines = []
    published = [reported(experiment.name, row, *place) for place in places]
    if any(published):
        lines.append(
            ["", "the paper", *(f"{figure.mean:.1f} ± {figure.std:.1f}" if figure else "" for figure in published)]
        )
        ours_less_theirs = [
            f"{cell.mean - figure.mean:+.1f}" if cell and figure else ""
            for cell, figure in zip(cells, published, strict=True)
        ]
        lines.append(["", "ours less the paper", *ours_less_theirs])
    for method, name in RIVALS.items():
        differences = [_difference(cell, entries, method) if cell else None for cell in cells]
        if any(differences):
            lines.append(["", f"less {name}, paired", *(_interval(difference) for difference in differences)])
    return lines


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    n = len(entry.accuracies)
    text = f"{entry.mean:.1f}" if n == 1 else f"{entry.mean:.1f} ± {entry.std:.1f}"
    return f"{text} (n={n}{f', {entry.failed} diverged' if entry.failed else ''})" if n else "diverged"


def _interval(difference: Difference | None) -> str:
    return "" if difference is None else difference.text()


_NOTE = (
    "Test accuracy in percent, mean ± standard deviation (n - 1) over n random splits, seeds 0 to n - 1. Paired "
    "differences are over the same splits, with their 95 % interval."
)


def _markdown(experiment: Experiment, entries: list[Entry], command: str, drawn: list[Path]) -> str:
    images = [f"![{experiment.title}]({path.name})" for path in drawn]
    tables = [table.markdown() for table in _tables(experiment, entries)]
    parts = [f"# {experiment.title}", _NOTE, *tables, *images, source_line(command)]
    return "\n\n".join(parts) + "\n"


def _html(experiment: Experiment, entries: list[Entry], command: str, drawn: list[Path]) -> str:
    images = [inline_svg(path.read_text(encoding="utf-8")) for path in drawn]
    tables = [table.html() for table in _tables(experiment, entries)]
    cards = "\n".join(f'<section class="card">{part}</section>' for part in (*tables, *images))
    source = html.escape(source_line(command))
    return page(experiment.title, f"<p>{html.escape(_NOTE)}</p>\n{cards}\n<footer><p>{source}</p></footer>")
