"""The tables of docs/performance.md from the files in benchmarks/results; `tools/update_readme.py` puts them there."""

import json
from pathlib import Path
from typing import Any


def bench(source: Path) -> str:
    """What `cagat bench` wrote: the facts of the run, and a line a row."""
    rows = json.loads(source.read_text(encoding="utf-8"))
    head = "| case | threads | ours, ms | peer | its, ms | ratio | at most | aim |\n|---|--:|--:|---|--:|---|--:|--:|"
    lines = [
        f"| {row['case']} | {row['threads']} | {_milliseconds(row['ours_ms'])} | {row['peer']} "
        f"| {_milliseconds(row['peer_ms'])} | {_ratio(row)} | {_limit(row['target'])} | {_limit(row['aim'])} |"
        for row in rows
    ]
    return "\n".join([_facts(rows[0]["run"]), "", head, *lines]) + "\n"


def tricks(source: Path) -> str:
    """What `tools/measure_tricks.py` wrote: a line a trick, a column a graph."""
    written = json.loads(source.read_text(encoding="utf-8"))
    graphs = list(dict.fromkeys(row["graph"] for row in written["rows"]))
    times = {
        (row["trick"], row["graph"]): f"{_short(row['without_ms'])} -> {_short(row['with_ms'])}"
        for row in written["rows"]
    }
    lines = [
        f"| {trick} | {' | '.join(times[trick, graph] for graph in graphs)} |"
        for trick in dict.fromkeys(row["trick"] for row in written["rows"])
    ]
    head = f"| trick: without / with | {' | '.join(graphs)} |\n|---|{'--:|' * len(graphs)}"
    return "\n".join([_facts(written["run"]), "", head, *lines]) + "\n"


def row_bandwidth(source: Path) -> str:
    """What `tools/row_bandwidth.py` wrote: a line a number of nodes."""
    written = json.loads(source.read_text(encoding="utf-8"))
    columns = list(dict.fromkeys((row["threads"], row["asked_for"]) for row in written["found"]))
    speeds = {
        (row["nodes"], row["threads"], row["asked_for"]): f"{row['gigabytes_per_second']:.1f}"
        for row in written["found"]
    }
    lines = [
        f"| {nodes:,} | {nodes * written['row_bytes'] / 1e6:.1f} "
        f"| {' | '.join(speeds[(nodes, *column)] for column in columns)} |"
        for nodes in dict.fromkeys(row["nodes"] for row in written["found"])
    ]
    names = " | ".join(f"{threads} thread{'s' * (threads > 1)}, asked for {asked}" for threads, asked in columns)
    head = f"| nodes | MB of rows | {names} |\n|--:|--:|{'--:|' * len(columns)}"
    return "\n".join([_facts(written["measured"]), "", head, *lines]) + "\n"


def _facts(run: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    load = ", ".join(f"{value:.1f}" for value in run["load_average"] or [])
    return (
        f"`{run['command']}`, {run['date']}, {run['cores']} cores of {run['cpu']}, {versions};\n"
        f"load averages at the start {load}; one thread copies {run['copy_gigabytes_per_second']:.0f} GB a second."
    )


def _ratio(row: dict[str, Any]) -> str:
    """The ratio, and whether it is what it should be."""
    value, target, aim = row["ratio"], row["target"], row["aim"]
    shown = f"1/{1 / value:.0f}" if value < 0.1 else f"{value:.3g}" if row["unit"] != "x" else f"{value:.2f}"
    shown += "" if row["unit"] == "x" else f" {row['unit']}"
    if target is None:
        return shown
    return shown + (", aim met" if value <= aim else "" if value <= target else " **missed**")


def _limit(value: float | None) -> str:
    """What a ratio may or should be."""
    return "" if value is None else f"1/{1 / value:.0f}" if value < 0.1 else f"{value:g}"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
