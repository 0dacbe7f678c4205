"""`cagat bench`: our layer and its training beside others."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cagat.experiments.bench import Measurement


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure only the layer, on Cora and PubMed; about a minute.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also measure GATv2, APPNP and other alternatives.")
    ] = False,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Measure only how long people wait for `cagat suggest` and `cagat label`.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=2, help="Maximum number of measurements per side.")] = 30,
    dgl: Annotated[Path | None, typer.Option(help="With --compare: the Python of an environment that has DGL.")] = None,
    against: Annotated[Path | None, typer.Option(help="Compare only the layer, with that of another checkout.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the measurements to this file.")] = None,
) -> None:
    """Benchmark the CaGAT layer and its training against PyG's GAT, in turns, with one and with two threads."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from cagat.errors import CagatError
    from cagat.files import atomic_write

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise CagatError(f"{json_file} cannot be written: there is no directory {json_file.parent}; create it first")
    from cagat.experiments.bench import measure
    from cagat.experiments.bench.in_turns import commit_of, measure_against
    from cagat.experiments.bench.measurement import facts

    switches = [f"--{name}" for name, is_on in (("quick", quick), ("compare", compare), ("waiting", waiting)) if is_on]
    if against is not None:
        switches.append(f"--against {os.path.relpath(against)}")  # Where the checkouts lie is nobody's business.
    run = facts(" ".join(["cagat bench", *switches, f"--repeats {repeats}"]))
    console = Console()
    rows: list[Measurement] = []
    left_out: list[str] = []
    with console.status("Measuring") as status:
        measured = measure(
            quick=quick,
            compare=compare,
            waiting=waiting,
            repeats=repeats,
            dgl_python=dgl,
            left_out=left_out.append,
        )
        if against is not None:
            run["commit"], measured = commit_of(), measure_against(against, (1, 2), repeats)
        for row in measured:
            rows.append(row)
            if json_file is not None:  # After every row, so that an interrupted run is not lost.
                atomic_write(json_file, json.dumps([asdict(row) | {"run": run} for row in rows], indent=2) + "\n")
            status.update(f"Measuring; last: {row.case}, {row.threads} threads, {row.ratio:.2f} {row.unit}")
    table = Table(title="ms: median ± quartiles' distance", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("case, and what it is beside")
    for name in ("threads", "ours", "its", "ratio", "at most", "aim"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for reason in left_out:
        console.print(f"Left out: {reason}")
    if json_file is not None:
        console.print(f"Written to {json_file}")


def _cells(row: "Measurement") -> tuple[str, ...]:
    """The cells of a row, which must fit into eighty columns: the peer stands below the case."""
    case = row.case if row.peer_ms is None else f"{row.case}\n  beside {row.peer}"
    ours = _time(row.ours_ms, row.ours_spread_ms)
    peer = "" if row.peer_ms is None else _time(row.peer_ms, row.peer_spread_ms)
    unit = "" if row.unit == "x" else f" {row.unit}"
    limits = ("" if limit is None else f"{limit:.3g}" for limit in (row.target, row.aim))
    return case, str(row.threads), ours, peer, f"{row.ratio:.3g}{unit}", *limits


def _time(median: float, spread: float | None) -> str:
    digits = 1 if median < 100 else 0
    return f"{median:.{digits}f} ±{spread:.{digits}f}" if spread else f"{median:.{digits}f}"
