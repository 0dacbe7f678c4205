"""Put the tables of results/ and benchmarks/results/ into README.md and the pages of docs/ that show them.

Run: python tools/update_readme.py [--check]

A table stands between `<!-- results: NAME -->` and `<!-- end of NAME -->`; what is there is replaced. With `--check`
nothing is written, and the exit code is 1 if a file does not agree with the results.
"""

import argparse
import csv
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import performance_table
import tuning_tables
from cagat.experiments.experiment import Row, figure2, readings, table1, tuned
from cagat.experiments.job_store import JobStore
from cagat.experiments.paper import reported
from cagat.experiments.summary import Entry, entries, paired_difference
from cagat.experiments.tables import RIVALS, rival
from cagat.models import card
from cagat.style import Table

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/reproduction.md", "docs/reliability.md", "docs/performance.md")
_BLOCK = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)

Line = dict[str, str]

FIRST_UNSEEN = 4
"""Accuracies of the splits before this one were looked at before the last search, see docs/reproduction.md."""


SWITCHES = ("support", "affinity", "feedback")
"""What makes a reading of the paper."""


def main_table(results: Path) -> str:
    """Table 1, a line a method and preset, the best mean of each column in bold, and how far CaGAT is from others."""
    lines = _lines(results / "table1.csv")
    places = list(dict.fromkeys((line["dataset"], line["labels_per_class"]) for line in lines))
    best = {place: max(float(line["mean"]) for line in lines if _place(line) == place) for place in places}
    head = ["method", "preset", *(f"{dataset} {labels}" for dataset, labels in places)]
    rows = []
    for method, preset in dict.fromkeys((line["method"], line["preset"]) for line in lines):
        own = {_place(line): line for line in lines if (line["method"], line["preset"]) == (method, preset)}
        rows.append([method, preset, *(_mean(own.get(place), best[place]) for place in places)])
        for other, name in RIVALS.items():
            if any(line[f"minus_{other}"] for line in own.values()):
                rows.append(["", f"less {name}, paired", *(_less(own.get(place), other) for place in places)])
    published = {_place(line): line["paper_mean"] for line in lines if line["method"] == "cagat"}
    rows.append(["the paper's CaGAT", "", *(published.get(place, "") for place in places)])
    counts = sorted({int(line["n"]) for line in lines})
    splits = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{Table(head, rows, words=2).markdown()}\n\nMeans over {splits} splits. {_source(results / 'table1.md')}\n"


def baselines(results: Path) -> str:
    """Cell by cell, how far the best preset of each of our baselines lies above the paper's row."""
    lines = [line for line in _lines(results / "table1.csv") if line["paper_mean"] and line["method"] != "cagat"]
    places = list(dict.fromkeys(map(_place, lines)))
    head = ["method", *(f"{dataset} {labels}" for dataset, labels in places)]
    rows = []
    for method in dict.fromkeys(line["method"] for line in lines):
        cells = []
        for place in places:
            here = [line for line in lines if line["method"] == method and _place(line) == place]
            above = max((float(line["mean"]) - float(line["paper_mean"]) for line in here), default=None)
            cells.append("" if above is None else f"{above:+.1f}")
        rows.append([method, *cells])
    return Table(head, rows).markdown() + "\n"


def untouched(results: Path) -> str:
    """What Table 1 says of tuned CaGAT on the splits whose accuracies nobody had seen when its preset was searched."""
    experiment = table1().restricted(methods=["cagat", *RIVALS])
    found = entries(experiment, JobStore(results, experiment.name))
    unseen = [
        replace(entry, accuracies={seed: share for seed, share in entry.accuracies.items() if seed >= FIRST_UNSEEN})
        for entry in found
    ]
    ours = [entry for entry in unseen if entry.row == tuned("cagat")]
    head = ["tuned CaGAT", *(f"{entry.dataset} {entry.labels}" for entry in ours)]
    rows = []
    for method, name in RIVALS.items():
        others = [rival(entry, unseen, method) for entry in ours]
        differences = [None if other is None else entry.minus(other) for entry, other in zip(ours, others, strict=True)]
        rows.append([f"less {name}, paired", *("" if d is None else d.text() for d in differences)])
    counts = sorted({len(entry.accuracies) for entry in ours})
    return f"{Table(head, rows).markdown()}\n\nSplits from {FIRST_UNSEEN} on, n = {', '.join(map(str, counts))}.\n"


def nearest(results: Path) -> str:
    """How far each reading of the paper lies from its Table 2, the nearest first, and from the preset's reading."""
    found: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries(readings(), JobStore(results, "readings")):
        values = dict(entry.row.changes)
        # Without affinity it does not matter where it would be, and it was run once.
        for affinity in ("edges", "full") if values["xi"] == 0 else (values["affinity"],):
            found.setdefault((values["support"], affinity, values["feedback"]), []).append(entry)
    found = {reading: own for reading, own in found.items() if any(dict(e.row.changes)["xi"] > 0 for e in own)}
    own = card("cagat").preset("paper")
    default = tuple(own[switch] for switch in SWITCHES)
    ours = _by_split(found[default])
    head = [*SWITCHES, "mean distance from Table 2", f"with xi={own['xi']:g} only", "mean difference"]
    rows = []
    for reading, cells in found.items():
        apart = [(dict(cell.row.changes)["xi"], cell.mean - _table2(cell)) for cell in cells]
        distance = statistics.fmean(abs(points) for _, points in apart)
        at_preset = [abs(points) for xi, points in apart if xi == own["xi"]]
        difference = statistics.fmean(points for _, points in apart)
        less = None if reading == default else paired_difference(_by_split(cells), ours)
        line = [
            *map(str, reading),
            f"{distance:.1f}",
            f"{statistics.fmean(at_preset):.1f}" if at_preset else "",
            f"{difference:+.1f}",
            "" if less is None else less.text(),
            str(len(apart)),
        ]
        rows.append((distance, line))
    nearest_first = [line for _, line in sorted(rows)]
    head += ["less the preset's reading, paired", "figures"]
    return Table(head, nearest_first, words=len(SWITCHES)).markdown() + "\n"


def _table2(entry: Entry) -> float:
    """What the paper's Table 2 has for the xi of a reading."""
    row = Row("cagat", "paper", (("xi", dict(entry.row.changes)["xi"]),))
    published = reported("table2", row, entry.dataset, entry.labels)
    if published is None:
        raise ValueError(f"Table 2 has no {row} on {entry.dataset}")
    return published.mean


def _by_split(cells: list[Entry]) -> dict[int, float]:
    """The mean over cells of the accuracy on each split that all of them have."""
    seeds = set.intersection(*(set(cell.accuracies) for cell in cells))
    return {seed: statistics.fmean(cell.accuracies[seed] for cell in cells) for seed in seeds}


def figure2_gat(results: Path) -> str:
    """What GAT with its authors' settings reaches on the splits of Figure 2."""
    curves = entries(figure2(), JobStore(results, "figure2"))
    seeds = set[int]().union(*(entry.accuracies for entry in curves))
    [dataset], [labels] = {entry.dataset for entry in curves}, {entry.labels for entry in curves}
    experiment = table1().restricted(methods=["gat"], datasets=[dataset], labels=[labels])
    [gat] = [entry for entry in entries(experiment, JobStore(results, "table1")) if entry.row.preset == "authors"]
    same = replace(gat, accuracies={seed: share for seed, share in gat.accuracies.items() if seed in seeds})
    return f"GAT with its authors' settings on the same splits: {same.mean:.1f} (n={len(same.accuracies)}).\n"


def fit_times(results: Path) -> str:
    """What a run of Table 1 costs: median seconds of a core and epochs, for all methods that learn by epochs."""
    experiment = table1()
    store = JobStore(results, experiment.name)
    runs: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for job in experiment.jobs():
        found = store.found(job)
        if found is not None and found.get("epochs", 1) > 1:
            runs.setdefault((job.method, job.preset), {}).setdefault(job.cell.dataset, []).append(found)
    rows = [
        [method, preset, *(_cost(by_graph.get(dataset, [])) for dataset in experiment.datasets)]
        for (method, preset), by_graph in runs.items()
    ]
    return Table(["method", "preset", *experiment.datasets], rows, words=2).markdown() + "\n"


def _cost(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return ""
    seconds, epochs = (statistics.median(run[key] for run in runs) for key in ("cpu_seconds", "epochs"))
    return f"{seconds:.1f} s, {epochs:.0f}"


def whole(name: str) -> Callable[[Path], str]:
    """The Markdown that `cagat reproduce` wrote, without its title and its pictures, which lie beside it."""

    def table(results: Path) -> str:
        parts = (results / f"{name}.md").read_text(encoding="utf-8").split("\n\n")[1:]
        return "\n\n".join(part for part in parts if not part.startswith("!["))

    return table


def as_written(name: str) -> Callable[[Path], str]:
    """The Markdown that a tool wrote, all of it."""
    return lambda results: (results / f"{name}.md").read_text(encoding="utf-8")


def measured(table: Callable[[Path], str], name: str) -> Callable[[Path], str]:
    """A table of what was measured, in the directory of the benchmarks."""
    return lambda results: table(results.parent / "benchmarks" / "results" / f"{name}.json")


TABLES: dict[str, Callable[[Path], str]] = {
    "main": main_table,
    "baselines": baselines,
    "untouched": untouched,
    "nearest": nearest,
    "figure2_gat": figure2_gat,
    "fit_times": fit_times,
    "by_hand": tuning_tables.by_hand,
    "calibrated": tuning_tables.calibrated,
    "switches": tuning_tables.switches,
    **{
        name: whole(name)
        for name in ("table1", "table2", "figure1", "figure2", "few_labels", "readings", "noise", "learned", "ablation")
    },
    **{name: as_written(name) for name in ("faults", "memory_estimates", "where_context_helps")},
    **{name: measured(performance_table.bench, name) for name in ("bench", "compare")},
    "tricks": measured(performance_table.tricks, "tricks"),
    "row_bandwidth": measured(performance_table.row_bandwidth, "row_bandwidth"),
}


def updated(page: str, results: Path) -> str:
    """The page with the tables as the results have them."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block['name']](results)}\n{block[3]}", page)


def _lines(path: Path) -> list[Line]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _place(line: Line) -> tuple[str, str]:
    return line["dataset"], line["labels_per_class"]


def _mean(line: Line | None, best: float) -> str:
    if line is None:
        return ""
    text = f"{float(line['mean']):.1f}"
    return f"**{text}**" if float(line["mean"]) == best else text


def _less(line: Line | None, other: str) -> str:
    if line is None or not line[f"minus_{other}"]:
        return ""
    mean, low, high = (float(line[f"minus_{other}{end}"]) for end in ("", "_low", "_high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _source(path: Path) -> str:
    """Who wrote a table, when and with what: the last line of its Markdown."""
    return path.read_text(encoding="utf-8").strip().splitlines()[-1]


def main() -> int:
    """Update or check all pages; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args().check
    stale = []
    for name in PAGES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = updated(before, ROOT / "results")
        if after != before:
            stale.append(name)
            if not check:
                path.write_text(after, encoding="utf-8")
    print(", ".join(stale) + (" out of date" if check else " updated") if stale else "All pages agree with results/.")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
