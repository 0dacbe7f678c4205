"""The tables of accuracies in README.md and docs/, made from the records in results/."""

import json
import statistics
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from cagat.experiments.experiment import Experiment, Row, contenders, factors, readings, table1, table1_seen
from cagat.experiments.jobs import JobStore
from cagat.experiments.records import Records
from cagat.experiments.summary import TableCell, paired_difference, table_cells
from cagat.experiments.tables import note, readable_tables, reported
from cagat.experiments.tuning import read_trials
from cagat.models import card
from cagat.style import Table

main_table = table1_seen
"""The table that README.md and the verdict are made from."""

SWITCHES = ("support", "affinity", "feedback")
"""What makes a reading of the paper."""


def experiment_block(make: Callable[[], Experiment]) -> Callable[[Path], str]:
    """The tables of an experiment as `cagat reproduce` writes them, without title and pictures."""

    def block(results: Path) -> str:
        experiment = make()
        if not (cells := cells_of(experiment, results)):
            return "Not yet run.\n"
        tables = readable_tables(experiment, cells)
        parts = [note(experiment), *(table.markdown() for table in tables), source(experiment, results)]
        return "\n\n".join(parts) + "\n"

    return block


def cells_of(experiment: Experiment, results: Path) -> list[TableCell]:
    """What the records have of an experiment."""
    return table_cells(experiment, store_of(experiment, results))


def store_of(experiment: Experiment, results: Path) -> JobStore:
    """The records of an experiment, which are read again only if a file has changed."""
    files = [(path, path.stat()) for path in sorted(results.glob("*.jsonl"))]
    return _store(results, experiment.name, tuple((path, at.st_mtime_ns, at.st_size) for path, at in files))


@lru_cache(maxsize=3)
def _store(results: Path, name: str, state: tuple[tuple[Path, int, int], ...]) -> JobStore:
    return JobStore(results, name)


def source(experiment: Experiment, results: Path) -> str:
    """Which file a table is from, and which versions wrote it."""
    name, found = experiment.name, Records(results / f"{experiment.name}.jsonl")
    versions = {json.dumps(record["found"].get("versions", {})) for record in found}
    known = "; ".join(", ".join(f"{key} {text}" for key, text in json.loads(one).items()) for one in sorted(versions))
    return f"From `results/{name}.jsonl`, which `cagat reproduce {name.replace('_', '-')}` wrote with {known}."


def baselines(results: Path) -> str:
    """Cell by cell, how far the best preset of each of our baselines lies above the paper's figure."""
    above: dict[str, dict[tuple[str, int], float]] = {}
    for cell in cells_of(main_table(), results):
        figure = reported("table1", cell.row, *cell.place)
        if figure is not None and cell.row.method != "cagat":
            best = above.setdefault(cell.row.method, {})
            best[cell.place] = max(best.get(cell.place, -100.0), cell.mean - figure.mean)
    places = list(dict.fromkeys(place for best in above.values() for place in best))
    rows = [
        [method, *(f"{best[place]:+.1f}" if place in best else "" for place in places)]
        for method, best in above.items()
    ]
    return Table(["method", *(f"{dataset} {labels}" for dataset, labels in places)], rows).markdown() + "\n"


def contenders_compared(results: Path) -> str:
    """CaGAT's default preset on Table 1 minus each other contender, split by split, the nearest first."""
    cells = cells_of(table1(), results)
    ours = {cell.place: cell for cell in cells if cell.row == contenders("cagat")[0]}
    rows = []
    for row in contenders(*dict.fromkeys(one.row.method for one in cells)):
        theirs = {cell.place: cell for cell in cells if cell.row == row and cell.place in ours}
        found = {place: difference for place in theirs if (difference := ours[place].minus(theirs[place]))}
        if found and row != contenders("cagat")[0]:
            mean = statistics.fmean(one.mean for one in found.values())
            texts = [found[place].text() if place in found else "" for place in ours]
            rows.append((mean, [row.method, row.preset, *texts, f"{mean:+.1f}"]))
    if not rows:
        return "Not yet run.\n"
    head = ["CaGAT minus", "preset", *(f"{dataset} {labels}" for dataset, labels in ours), "mean"]
    return Table(head, [line for _, line in sorted(rows)], words=2).markdown() + "\n"


def factors_compared(results: Path) -> str:
    """What context gives with the objective and without, and what the objective gives with context and without."""
    experiment = factors()
    by_row: dict[str, dict[tuple[str, int], TableCell]] = {}
    for cell in cells_of(experiment, results):
        by_row.setdefault(f"{cell.row.method} {cell.row.name}", {})[cell.place] = cell
    if not by_row:
        return "Not yet run.\n"
    pairs = (
        ("context, with the objective", "cagat best", "cagat best without context"),
        ("context, without the objective", "cagat plain", "cagat plain without context"),
        ("the objective, with context", "cagat best", "cagat plain"),
        ("the objective, without context", "cagat best without context", "cagat plain without context"),
        ("CaGAT instead of GAT, with the objective", "cagat best", "gat best"),
        ("CaGAT instead of GAT, without the objective", "cagat plain", "gat plain"),
    )
    places, rows = list(product(experiment.graph_names, experiment.labels)), []
    for what, one, other in pairs:
        ours, theirs = by_row.get(one, {}), by_row.get(other, {})
        found = [ours[at].minus(theirs[at]) if at in ours and at in theirs else None for at in places]
        rows.append([what, *(difference.text() if difference else "" for difference in found)])
    head = ["what it gives, in points", *(f"{dataset} {labels}" for dataset, labels in places)]
    return Table(head, rows).markdown() + "\n"


def nearest(results: Path) -> str:
    """How far each reading of the paper lies from its Table 2, the nearest first, and from the preset's reading."""
    found: dict[tuple[Any, ...], list[tuple[float, TableCell]]] = {}
    for cell in cells_of(readings(), results):
        values = dict(cell.row.changes)
        # Without affinity it does not matter where it would be, and it was run once.
        for affinity in ("edges", "full") if values["xi"] == 0 else (values["affinity"],):
            found.setdefault((values["support"], affinity, values["feedback"]), []).append((values["xi"], cell))
    own = card("cagat").preset("paper")
    default = tuple(own[switch] for switch in SWITCHES)
    ours, rows = _by_split([cell for _, cell in found[default]]), []
    for reading, cells in found.items():
        if not any(xi > 0 for xi, _ in cells):
            continue
        apart = [(xi, cell.mean - _table2(xi, cell)) for xi, cell in cells]
        distance = statistics.fmean(abs(points) for _, points in apart)
        at_preset = [abs(points) for xi, points in apart if xi == own["xi"]]
        difference = paired_difference(_by_split([cell for _, cell in cells]), ours) if reading != default else None
        line = [
            *map(str, reading),
            f"{distance:.1f}",
            f"{statistics.fmean(at_preset):.1f}" if at_preset else "",
            f"{statistics.fmean(points for _, points in apart):+.1f}",
            "" if difference is None else difference.text(),
            str(len(apart)),
        ]
        rows.append((distance, line))
    head = [*SWITCHES, "mean distance from Table 2", f"with xi={own['xi']:g} only", "mean difference"]
    head += ["difference to the preset's reading (paired)", "figures"]
    return Table(head, [line for _, line in sorted(rows)], words=len(SWITCHES)).markdown() + "\n"


def _table2(xi: float, cell: TableCell) -> float:
    figure = reported("table2", Row("cagat", "paper", (("xi", xi),)), *cell.place)
    assert figure is not None, f"Table 2 has no xi={xi} on {cell.place}"
    return figure.mean


def _by_split(cells: list[TableCell]) -> dict[int, float]:
    """The mean over cells of the accuracy on each split that all of them have."""
    seeds = set.intersection(*(set(cell.accuracies) for cell in cells))
    return {seed: statistics.fmean(cell.accuracies[seed] for cell in cells) for seed in seeds}


def fit_times(results: Path) -> str:
    """What a run of Table 1 costs: median seconds of a core and epochs, for all methods that learn by epochs."""
    experiment = main_table()
    store = store_of(experiment, results)
    runs: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for job in experiment.jobs():
        found = store.found(job)
        if found is not None and found.get("epochs", 1) > 1:
            runs.setdefault((job.method, job.preset), {}).setdefault(job.task.dataset, []).append(found)
    rows = [
        [*names, *(_cost(by_graph.get(dataset, [])) for dataset in experiment.datasets)]
        for names, by_graph in runs.items()
    ]
    return Table(["method", "preset", *experiment.datasets], rows, words=2).markdown() + "\n"


def _cost(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return ""
    seconds, epochs = (statistics.median(run[key] for run in runs) for key in ("cpu_seconds", "epochs"))
    return f"{seconds:.1f} s, {epochs:.0f}"


def searches(results: Path) -> str:
    """The best configuration of each search with the objective and without, and of its finalists on other splits."""
    rows = []
    for name in ("cagat", "gat", "appnp", "gcnii", "grand"):
        found = [read_trials(results / "tuning" / f"{name}_{kind}") for kind in ("plain", "best", "best_finalists")]
        best = [max((trial.value or 0.0 for trial in trials), default=0.0) for trials in found]
        if any(found):
            tried = ", ".join(str(len(trials)) for trials in found if trials)
            rows.append([name, *(f"{100 * one:.1f}" if one else "" for one in best), tried])
    head = ["model", "supervised", "consistent", "consistent, finalists on other splits", "configurations tried"]
    return Table(head, rows).markdown() + "\n"
