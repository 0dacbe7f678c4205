"""`cagat suggest`: which nodes to label next."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cagat.cli.data import DataDir
from cagat.cli.flags import with_settings
from cagat.cli.output import show_messages
from cagat.errors import ConfigError
from cagat.settings import READING, TrainConfig

if TYPE_CHECKING:
    from torch_geometric.data import Data

NAMES = ("coverage", "random", "pagerank", "featprop", "age", "grain")
SHOWN = 10


@with_settings(READING)
def suggest(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="A name from `cagat data list`, or a path.")],
    budget: Annotated[int, typer.Option(min=1, help="Number of nodes to suggest.")],
    run: Annotated[
        Path | None, typer.Option(help="A run trained on this graph: prefer nodes that its model is unsure of.")
    ] = None,
    strategy: Annotated[str, typer.Option(help=f"How to choose: {', '.join(NAMES)}.")] = NAMES[0],
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of random choices.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file: .csv or .parquet (default: suggestions.csv; none with --json)."),
    ] = None,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **flags: str,
) -> None:
    """Suggest which nodes to label next, most useful first.

    The file has one row per node: rank, node, score, reason. Labelled nodes are never suggested; a published graph
    counts as unlabelled. The beginning of a long list is a good short list.
    """
    show_messages()
    from cagat.suggestions import suggest as find
    from cagat.suggestions import suggestions_table
    from cagat.training.predictions import TABLE_FILES, require_suffix, write_table
    from cagat.training.problem import load_graph

    if out is None and not as_json:
        out = Path("suggestions.csv")
    if out is not None:
        require_suffix(out, TABLE_FILES)
    place = None if data_dir is None else str(data_dir)
    given: str | Data = graph
    if flags:
        if run is not None:
            raise ConfigError(f"--{next(iter(flags))}: the run already says how its tables are read. Leave it out.")
        given = load_graph(graph, place, TrainConfig.from_values({"dataset": graph, **flags}))
    found = find(given, budget, strategy=strategy, seed=seed, run=run, data_dir=place)
    table = suggestions_table(found)
    if out is not None:
        write_table(table, out)
    if as_json:
        typer.echo(json.dumps({"graph": graph, "strategy": strategy, "seed": seed, "suggestions": table.to_pylist()}))
        return
    for one in found[:SHOWN]:
        typer.echo(f"{one.rank:3}. {one.node}: {one.reason}")
    if len(found) > SHOWN:
        typer.echo(f"     and {len(found) - SHOWN} more")
    typer.echo(f"{out}: {len(found)} nodes")
