"""Put the tables of results/ and benchmarks/results/ into README.md and the pages of docs/ that show them.

Run: python tools/update_docs.py [--check]

A table stands between `<!-- results: NAME -->` and `<!-- end of NAME -->`; what is there is replaced. With `--check`
nothing is written, and the exit code is 1 if a page does not agree with the results. Where a page has only
`<!-- generated: NAME -->`, the table is put there when the site is built (tools/site_hooks.py).
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

import accuracy_blocks
import fault_table
import headline_blocks
import measurement_blocks
import warm_starts
import where_context_helps
from cagat.experiments.experiment import EXPERIMENTS
from cagat.parts.part_files import ARRAYS
from cagat.style import Table
from command_reference import commands

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)
_GENERATED = re.compile(r"<!-- generated: ([\w-]+) -->")

BLOCKS: dict[str, Callable[[Path], str]] = {
    "readme": headline_blocks.readme,
    "verdict": headline_blocks.verdict,
    "baselines": accuracy_blocks.baselines,
    "contenders_compared": accuracy_blocks.contenders_compared,
    "factors_compared": accuracy_blocks.factors_compared,
    "nearest": accuracy_blocks.nearest,
    "fit_times": accuracy_blocks.fit_times,
    "searches": accuracy_blocks.searches,
    "where_context_helps": where_context_helps.block,
    "warm_starts": lambda results: warm_starts.table(results.parent / "benchmarks" / "results" / "warm_starts.jsonl"),
    "faults": lambda results: fault_table.table(list(fault_table.read_rows(results / "faults.json").values())),
    "commands": commands,
    "part_arrays": lambda results: Table(["array", "what it holds"], list(map(list, ARRAYS.items()))).markdown() + "\n",
    **{name.replace("-", "_"): accuracy_blocks.experiment_block(make) for name, make in EXPERIMENTS.items()},
    **{name: measurement_blocks.bench_block(name) for name in ("bench", "compare", "redesign", "waiting")},
    **{
        make.__name__: make
        for make in (
            measurement_blocks.speed,
            measurement_blocks.tricks,
            measurement_blocks.row_bandwidth,
            measurement_blocks.structural_features,
            measurement_blocks.scaling,
            measurement_blocks.weak,
            measurement_blocks.halos,
            measurement_blocks.cuts,
            measurement_blocks.parts,
            measurement_blocks.shares,
            measurement_blocks.clusters,
            measurement_blocks.estimate,
        )
    },
}


def pages() -> list[Path]:
    """README.md and all pages of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def updated(page: str, results: Path) -> str:
    """The page with the tables as the results have them."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{BLOCKS[block['name']](results)}\n{block[3]}", page)


def generated(page: str, results: Path) -> str:
    """The page with the tables that are made when the site is built."""
    return _GENERATED.sub(lambda block: BLOCKS[block[1]](results), page)


def main() -> int:
    """Update or check all pages; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args().check
    stale = []
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = updated(before, ROOT / "results")
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(after, encoding="utf-8")
    print(", ".join(stale) + (" out of date" if check else " updated") if stale else "All pages agree with results/.")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
