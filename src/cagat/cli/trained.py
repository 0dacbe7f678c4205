"""Commands on trained runs: `cagat predict`, `evaluate`, `embed`, `explore` and `report`."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.output import show_messages

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The directory that `cagat train` wrote.")]
Dataset = Annotated[
    str | None, typer.Option(help="Another graph with the same features: a name or a path (default: the run's own).")
]


def predict(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="The file to write: .csv or .parquet.")],
    dataset: Dataset = None,
) -> None:
    """Label all nodes of a graph with a trained model.

    The file has one row per node: node, predicted, probability_CLASS for each class, split.
    """
    show_messages()
    from cagat.training import TrainedRun
    from cagat.training.predictions import TABLE_FILES, require_suffix

    require_suffix(out, TABLE_FILES)
    predictions = TrainedRun(run).predict(dataset)
    predictions.write(out)
    typer.echo(f"{out}: {len(predictions.nodes)} nodes")


def evaluate(
    run: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how many nodes of each part a trained model labels right, and of test nodes class by class."""
    show_messages()
    from rich.console import Console
    from rich.table import Table

    from cagat.training import TrainedRun

    found = TrainedRun(run).evaluate()
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
        return
    for part, share in found.accuracy.items():
        typer.echo(f"{part:6} {100 * share:.1f} % of {found.sizes[part]} nodes")
    table = Table("class", "test nodes", "found", "of those called so, right", title="Test nodes, class by class")
    for row in found.classes:
        table.add_row(row.name, str(row.nodes), _percent(row.recall), _percent(row.precision))
    Console().print(table)


def embed(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="The file to write: .npz or .parquet (default: RUN/embedding.npz).")
    ] = None,
    dataset: Dataset = None,
) -> None:
    """Write the hidden representation of all nodes, for plots, clustering or other models.

    An .npz holds `nodes` (names) and `embedding` (nodes x units); a Parquet file the columns node, unit_0, unit_1, ...
    """
    show_messages()
    from cagat.training import TrainedRun
    from cagat.training.predictions import VECTOR_FILES, require_suffix

    out = run / "embedding.npz" if out is None else out
    require_suffix(out, VECTOR_FILES)
    embeddings = TrainedRun(run).embed(dataset)
    embeddings.write(out)
    typer.echo(f"{out}: {embeddings.vectors.shape[0]} nodes x {embeddings.vectors.shape[1]} units")


def explore(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="The page to write: one .html file.")] = Path("explore.html"),
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Nodes whose attention is kept, test nodes first (default: all up to 3000 nodes, else 400)."
        ),
    ] = None,
    node: Annotated[list[str] | None, typer.Option(help="The name of a node that must be among them, or more.")] = None,
) -> None:
    """Show a trained model: its embedding, and the attention of each node before and after diffusion.

    The page opens in any browser, without a network. It also shows how often attention falls on the same class, how
    widely it is spread, which classes are confused, and how training went.
    """
    show_messages()
    from cagat.errors import ConfigError

    if out.suffix not in (".html", ".htm"):
        raise ConfigError(f"{out}: the file must end in .html.")
    from cagat.explore import write_page

    command = shlex.join(["cagat", *sys.argv[1:]])
    page = write_page(run, out, nodes=nodes, wanted=tuple(node or ()), command=command)
    typer.echo(f"{page.path}: {page.nodes} nodes, {page.shown} with their attention, {page.size / 1e6:.1f} MB")


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories that `cagat train` wrote.")],
    out: Annotated[Path, typer.Option(help="The name of the files, without their ending.")] = Path("report"),
) -> None:
    """Compare finished runs: tables, error bars and curves, as an HTML and a Markdown page.

    Runs that differ by their seed alone are one configuration; two configurations on the same graph are compared split
    by split.
    """
    show_messages()
    from cagat.experiments.run_report import write_run_report

    paths = write_run_report(runs, out, shlex.join(["cagat", *sys.argv[1:]]))
    typer.echo("\n".join(map(str, paths)))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"
