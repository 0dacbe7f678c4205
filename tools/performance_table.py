"""The table of docs/performance.md from a file that `cagat bench` wrote: `python tools/performance_table.py FILE`."""

import json
import sys
from pathlib import Path
from typing import Any


def ratio(row: dict[str, Any]) -> str:
    """The ratio, and whether it is what it should be."""
    value, target, aim = row["ratio"], row["target"], row["aim"]
    shown = f"1/{1 / value:.0f}" if value < 0.1 else f"{value:.3g}" if row["unit"] != "x" else f"{value:.2f}"
    shown += "" if row["unit"] == "x" else f" {row['unit']}"
    if target is None:
        return shown
    return shown + (", aim met" if value <= aim else "" if value <= target else " **missed**")


def limit(value: float | None) -> str:
    """What a ratio may or should be."""
    return "" if value is None else f"1/{1 / value:.0f}" if value < 0.1 else f"{value:g}"


def milliseconds(value: float | None) -> str:
    """Three digits of a time."""
    return "" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def main(source: Path) -> None:
    """Print the facts of the run and the table."""
    rows = json.loads(source.read_text())
    run = rows[0]["run"]
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    load = ", ".join(f"{value:.1f}" for value in run["load_average"] or [])
    print(f"`{run['command']}`, {run['date']}, {run['cores']} cores of {run['cpu']}, {versions};")
    print(f"load averages at the start {load}; one thread copies {run['copy_gigabytes_per_second']:.0f} GB a second.\n")
    print("| case | threads | ours, ms | peer | its, ms | ratio | at most | aim |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        ours, its = milliseconds(row["ours_ms"]), milliseconds(row["peer_ms"])
        limits = f"{limit(row['target'])} | {limit(row['aim'])}"
        print(f"| {row['case']} | {row['threads']} | {ours} | {row['peer']} | {its} | {ratio(row)} | {limits} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
