"""`cagat bench`: our layer beside PyG's."""

from pathlib import Path
from typing import Annotated

import typer


def bench(
    repeats: Annotated[int, typer.Option(min=2, help="How often each side is measured.")] = 30,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the measurements to this file, too.")] = None,
) -> None:
    """Measure the CaGAT layer beside PyG's GATConv on Cora, forward and backward, with one thread and with two."""
    import json

    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from cagat.errors import CagatError
    from cagat.experiments.bench import measure_layers

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise CagatError(f"{json_file} cannot be written: there is no directory {json_file.parent}; create it first")
    console = Console()
    rows = list(track(measure_layers(repeats=repeats), "Measuring", total=6, console=console, transient=True))
    table = Table("case", "threads", "ours", "PyG GATConv", "ratio", title="milliseconds: median ± interquartile range")
    for row in rows:
        ours, peer = f"{row.ours_ms:.1f} ± {row.ours_spread_ms:.1f}", f"{row.peer_ms:.1f} ± {row.peer_spread_ms:.1f}"
        table.add_row(row.case, str(row.threads), ours, peer, f"{row.ratio:.2f}")
    console.print(table)
    if json_file is not None:
        temporary = json_file.with_name(json_file.name + ".part")
        temporary.write_text(json.dumps([row.as_dict() for row in rows], indent=2) + "\n")
        temporary.replace(json_file)
        console.print(f"Written to {json_file}")
