"""Tables as files, CSV for machines, Markdown and HTML for people, and what the paper reports."""

import csv
import io
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.summary import Difference, TableCell
from cagat.files import atomic_write
from cagat.models import card
from cagat.style import Section, Table, write_report
from cagat.training.problem import DEFAULT_LABELS

RIVALS = {"gat": "GAT", "appnp": "APPNP"}
"""What CaGAT is compared with, split by split, where it is in the same table."""

_NOTE = (
    "Test accuracy in percent: mean ± standard deviation (n - 1) over n random splits, from seed {first} on. Paired "
    "differences are over the same splits, with their 95 % interval."
)
_NOTE_ON_CHOICES = (
    "Test accuracy in percent on all nodes that were not chosen: mean ± standard deviation (n - 1) over n seeds of "
    "strategy and weights, from seed {first} on. Labels are counted in all, of whatever classes the chosen nodes "
    "are; none is for validation."
)
_MOST_COLUMNS = 8


def write_tables(
    experiment: Experiment, cells: list[TableCell], directory: Path, command: str, pictures: Sequence[Path] = ()
) -> list[Path]:
    """Write the tables of an experiment, with those of its pictures that are SVG; the files that were written."""
    path = directory / f"{experiment.name}.csv"
    atomic_write(path, csv_table(experiment, cells))
    sections = [Section(table) for table in readable_tables(experiment, cells)]
    sections += [Section(picture) for picture in pictures if picture.suffix == ".svg"]
    page, text = write_report(path.with_suffix(""), experiment.title, sections, command, note(experiment))
    return [path, text, page]


def note(experiment: Experiment) -> str:
    """What the figures of an experiment are."""
    return (_NOTE_ON_CHOICES if experiment.chooses else _NOTE).format(first=experiment.first_seed)


class Reported(NamedTuple):
    """An accuracy in percent and its standard deviation, as the paper reports them."""

    mean: float
    std: float


def reported(experiment: str, row: Row, dataset: str, labels: int) -> Reported | None:
    """The paper's figure for a cell of Table 1 or Table 2, if it has one."""
    table = experiment.removesuffix("_seen")
    if table not in ("table1", "table2"):
        return None
    of_row = row.method if table == "table1" else dict(row.changes)["xi"]
    return _paper(table).get((of_row, dataset, labels))


@cache
def _paper(table: str) -> dict[tuple[Any, ...], Reported]:
    """The figures of a table by method or xi, graph and labels per class."""
    figures = {}
    file = resources.files("cagat.configs") / "paper" / f"{table}.csv"
    for line in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        # Our names are the paper's in small letters: labelprop-nl is LabelProp NL, cvd-pp is CVD+PP.
        of_row = re.sub(r"\W", "-", line["method"].lower()) if table == "table1" else float(line["xi"])
        figure = Reported(float(line["mean"]), float(line["std"]))
        figures[of_row, line["dataset"], int(line["labels_per_class"])] = figure
    return figures


def rival(cell: TableCell, cells: list[TableCell], method: str) -> TableCell | None:
    """The cell of this method that one of CaGAT is compared with.

    It has the same preset, or else the default one; as many validation nodes; and the same changes, or else the first
    there is.
    """
    if cell.row.method != "cagat":
        return None
    model = card(method)
    preset = cell.row.preset if cell.row.preset in model.presets else model.default
    wanted = (method, preset, cell.row.strategy, cell.place)
    others = [
        one
        for one in cells
        if (one.row.method, one.row.preset, one.row.strategy, one.place) == wanted
        and dict(one.row.changes).get("val_labels") == dict(cell.row.changes).get("val_labels")
    ]
    alike = [one for one in others if one.row.changes == cell.row.changes]
    return next(iter(alike or others), None)


def csv_table(experiment: Experiment, cells: list[TableCell]) -> str:
    """The table for machines, with more digits than anybody shows, so that nothing is rounded twice."""
    if experiment.chooses:
        return _choices_table(cells)
    keys = sorted({key for cell in cells for key, _ in cell.row.changes})
    titles = ["row"] if any(cell.row.title for cell in cells) else []
    errors = ["calibration_error"] if experiment.calibration else []
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([
        "method", "preset", *titles, *keys, "dataset", "labels_per_class", "mean", "std", "n", "failed", *errors,
        "paper_mean", "paper_std", *(f"minus_{method}{end}" for method in RIVALS for end in ("", "_low", "_high")),
    ])  # fmt: skip
    for cell in cells:
        changes = {"val_labels": DEFAULT_LABELS, **dict(cell.row.changes)}
        published = reported(experiment.name, cell.row, *cell.place)
        differences = [_difference(cell, cells, method) for method in RIVALS]
        writer.writerow([
            cell.row.method, cell.row.preset, *([cell.row.name] if titles else []),
            *(changes.get(key, "") for key in keys), *cell.place,
            f"{cell.mean:.4f}", f"{cell.std:.4f}", len(cell.accuracies), cell.failed,
            *([f"{cell.calibration_error:.4f}" if cell.calibration_errors else ""] if errors else []),
            *((published.mean, published.std) if published else ("", "")),
            *(f"{end:.4f}" if one else "" for one in differences for end in (one[:3] if one else range(3))),
        ])  # fmt: skip
    return lines.getvalue()


def _choices_table(cells: list[TableCell]) -> str:
    """The table for machines of an experiment in which strategies choose; `labels` are in all."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["strategy", "model", "dataset", "labels", "mean", "std", "n"])
    for cell in cells:
        numbers = f"{cell.mean:.4f}", f"{cell.std:.4f}", len(cell.accuracies)
        writer.writerow([cell.row.strategy, cell.row.method, cell.dataset, cell.labelled, *numbers])
    return lines.getvalue()


def _difference(cell: TableCell | None, cells: list[TableCell], method: str) -> Difference | None:
    other = None if cell is None else rival(cell, cells, method)
    return None if cell is None or other is None else cell.minus(other)


def readable_tables(experiment: Experiment, cells: list[TableCell]) -> list[Table]:
    """The tables for people: one, or if it were too wide one for each graph and its variants."""
    found = {cell.place for cell in cells}
    places = [place for place in product(experiment.graph_names, experiment.labels) if place in found]
    if len(places) <= _MOST_COLUMNS:
        return [_table(experiment, cells, places)]
    names = dict.fromkeys(dataset.partition(":")[0] for dataset, _ in places)
    return [_table(experiment, cells, [at for at in places if at[0].partition(":")[0] == name]) for name in names]


def _table(experiment: Experiment, cells: list[TableCell], places: Sequence[tuple[str, int]]) -> Table:
    """One line per configuration, one column per graph and number of labels."""
    by_place = {(cell.row, *cell.place): cell for cell in cells}
    in_all = {cell.place: cell.labelled for cell in cells if cell.labelled is not None}
    counts = [in_all.get(place, place[1]) for place in places]
    titles = [f"{at[0]}, {count} label{'s' * (count != 1)}" for at, count in zip(places, counts, strict=True)]
    head = ["method", "preset", *titles]
    lines = []
    for row in experiment.rows:
        own = [by_place.get((row, *place)) for place in places]
        if any(own):
            lines.append([row.method, row.name, *map(_cell_text, own)])
            lines += _comparisons(
                own, [reported(experiment.name, row, *place) for place in places], cells, experiment.calibration
            )
    return Table(head, lines, words=2)


def _comparisons(
    own: Sequence[TableCell | None],
    published: Sequence[Reported | None],
    cells: list[TableCell],
    calibration: bool,
) -> list[list[str]]:
    """Calibration errors, the paper's figures, and for CaGAT the paired differences to GAT and to APPNP."""
    lines = []
    if calibration and any(one.calibration_errors for one in own if one):
        errors = [f"{one.calibration_error:.1f}" if one and one.calibration_errors else "" for one in own]
        lines.append(["", "calibration error", *errors])
    if any(published):
        lines.append(["", "the paper", *(f"{one.mean:.1f} ± {one.std:.1f}" if one else "" for one in published)])
        pairs = zip(own, published, strict=True)
        lines.append(
            ["", "ours - the paper", *(f"{cell.mean - one.mean:+.1f}" if cell and one else "" for cell, one in pairs)]
        )
    for method, name in RIVALS.items():
        differences = [_difference(cell, cells, method) for cell in own]
        if any(differences):
            lines.append(["", f"difference to {name} (paired)", *(one.text() if one else "" for one in differences)])
    return lines


def _cell_text(cell: TableCell | None) -> str:
    if cell is None:
        return ""
    n = len(cell.accuracies)
    text = f"{cell.mean:.1f}" if n == 1 else f"{cell.mean:.1f} ± {cell.std:.1f}"
    return f"{text} (n={n}{f', {cell.failed} diverged' if cell.failed else ''})" if n else "diverged"
