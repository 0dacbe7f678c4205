"""`cagat data`: list, inspect, fetch and convert graphs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cagat.cli.flags import with_settings
from cagat.cli.output import progress, show_messages
from cagat.errors import DatasetError
from cagat.settings import READING

if TYPE_CHECKING:
    from cagat.data.published import Progress


class Method(str, Enum):
    """How a graph is cut."""

    metis = "metis"
    stream = "stream"


app = typer.Typer(help="List, inspect, download, convert and cut graphs.", no_args_is_help=True)

DataDir = Annotated[
    Path | None,
    typer.Option(help="Directory of published graphs (default: $CAGAT_DATA, or your cache directory)."),
]
Directed = Annotated[bool, typer.Option("--directed", help="Keep the direction of edges.")]
LargestComponent = Annotated[
    bool, typer.Option("--largest-component", help="Use only the largest connected component.")
]


@app.command("list")
def list_graphs(data_dir: DataDir = None) -> None:
    """List the graphs that can be loaded by name."""
    from rich.console import Console
    from rich.table import Table

    from cagat.data.published import PUBLISHED, data_directory
    from cagat.data.synthetic import Synthetic

    table = Table("name", "nodes", "edges", "features", "classes", "where", "what", box=None, pad_edge=False)
    folder = data_directory(data_dir)
    for graph in PUBLISHED.values():
        here = "to be fetched" if graph.sources else "in the package"
        place = "local" if (folder / f"{graph.name}.npz").is_file() else here
        numbers = (graph.nodes, graph.edges, graph.features, graph.classes)
        table.add_row(graph.name, *map(str, numbers), place, graph.about)
    table.add_row("digits", "1797", "9929", "64", "10", "made here", "images, joined to the nearest eight")
    table.add_row("breast_cancer", "569", "3440", "30", "2", "made here", "tumours, joined to the nearest eight")
    table.add_row("karate", "34", "78", "34", "2", "made here", "friends in a karate club")
    table.add_row("synthetic", *["any"] * 4, "made here", "random blocks, of any size")
    Console().print(table)
    typer.echo(f"\nLocal directory: {folder}")
    typer.echo(f"Synthetic:       {Synthetic().name}, or any part of it")
    typer.echo("Noise:           cora:added=50,dropped=20,seed=0, in percent of the edges; likewise the other three")
    typer.echo("Own graphs:      a directory with edges.csv, features.csv and labels.csv, an .npz or a .safetensors")


@app.command()
@with_settings(READING)
def info(
    name: Annotated[str, typer.Argument(help="A name from `cagat data list`, or a path.")],
    data_dir: DataDir = None,
    directed: Directed = False,
    largest_component: LargestComponent = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **flags: str,
) -> None:
    """Show a graph: its size, classes and source, and how each column of a table is encoded."""
    show_messages()
    from cagat.data import load, summarize

    with _progress_bar() as show:
        data = load(
            name,
            data_dir,
            sparse=True,
            directed=directed or None,
            largest_component=largest_component or None,
            columns=flags.pop("columns", None),
            names=flags,
            progress=show,
        )
    summary = summarize(data)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    sizes = zip(data.class_names, summary["class_sizes"], strict=True)
    summary["class_sizes"] = ", ".join(f"{label} {size}" for label, size in sizes) or "none"
    lines = summary.pop("columns", [])
    for key, value in summary.items():
        typer.echo(f"{key.replace('_', ' '):12} {'none' if value is None else value}")
    for number, line in enumerate(lines):
        typer.echo(f"{'' if number else 'columns':12} {line}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names from `cagat data list`.")],
    data_dir: DataDir = None,
) -> None:
    """Download published graphs, from the first source that has them."""
    show_messages()
    from cagat.data import fetch as fetch_graph

    failures = []
    for name in names:
        try:
            with _progress_bar() as show:
                path = fetch_graph(name, data_dir, progress=show)
        except DatasetError as error:
            failures.append(str(error))
            continue
        typer.echo(f"{name}: {path}")
    if failures:
        raise DatasetError("\n\n".join(failures))


@app.command()
@with_settings(READING)
def convert(
    out: Annotated[Path, typer.Argument(help="Output file: .npz or .safetensors.")],
    edges: Annotated[Path, typer.Option(help="Table of edges: source, target and optionally weight, ...")],
    features: Annotated[
        Path | None, typer.Option(help="Table of features: node and one column per feature; or node, feature, value.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Table of labels: node, label and optionally split.")] = None,
    splits: Annotated[Path | None, typer.Option(help="Table of splits: node and split (train, val or test).")] = None,
    directed: Directed = False,
    largest_component: LargestComponent = False,
    **flags: str,
) -> None:
    """Convert the tables of a graph (CSV, TSV or Parquet) to one file that loads fast."""
    show_messages()
    from cagat.data import convert as convert_tables

    graph = convert_tables(
        out,
        edges,
        features,
        labels,
        splits,
        directed=directed,
        largest_component=largest_component,
        columns=flags.pop("columns", None),
        names=flags,
    )
    count = graph.edge_index.shape[1] // (1 if directed else 2)
    labelled = int((graph.labels >= 0).sum())
    typer.echo(
        f"{out}: {graph.num_nodes} nodes, {count} {'directed' if directed else 'undirected'} edges, "
        f"{graph.features.shape[1]} features, {len(graph.class_names)} classes, {labelled} labelled nodes"
    )


@app.command()
def partition(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A name of the list, or the path of a graph.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The directory to write; the same call goes on with it.")],
    parts: Annotated[int, typer.Option(min=1, help="How many parts to cut the graph into.")],
    method: Annotated[
        Method, typer.Option(help="metis, or stream: node by node, for tables that memory cannot hold.")
    ] = Method.metis,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cut a graph into parts on disk, for processes that read only their own.

    Train on them with `torchrun --nproc-per-node N -m cagat train --dataset OUT --parallel graph`, where N divides the
    number of parts, or one part after the other with `cagat train --dataset OUT --out-of-core`.
    """
    show_messages()
    from rich.progress import BarColumn

    from cagat.parts.partition import partition as cut
    from cagat.parts.tables import Tables
    from cagat.parts.whole_graph import WholeGraph
    from cagat.training.problem import graph_digest, load_graph

    given: WholeGraph | Tables
    if method is Method.stream and Path(source).is_dir():
        given = Tables.of(Path(source))
    else:
        graph = load_graph(source, None if data_dir is None else str(data_dir))
        given = WholeGraph.of_data(graph, graph_digest(graph, graph.y))
    with progress("{task.description}", BarColumn()) as bars:
        task = bars.add_task("Writing parts", total=parts)
        manifest = cut(given, out, parts, method.value, on_part=lambda _: bars.advance(task))
    sizes = [stop - start for start, stop in zip(manifest.bounds, manifest.bounds[1:], strict=False)]
    if as_json:
        found = {"nodes": manifest.num_nodes, "entries": manifest.entries, "cut": manifest.cut, "parts": sizes}
        typer.echo(json.dumps(found))
        return
    typer.echo(
        f"{out}: {manifest.num_nodes} nodes in {manifest.num_parts} parts of {min(sizes)} to {max(sizes)} nodes, "
        f"{100 * manifest.cut:.1f} % of the edges are cut"
    )


@contextmanager
def _progress_bar() -> "Iterator[Progress]":
    """Give a function that shows a bar for each file that comes in, on a terminal and nowhere else."""
    from rich.progress import BarColumn, DownloadColumn, TaskID, TransferSpeedColumn

    with progress("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn()) as bars:
        tasks: dict[str, TaskID] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done, total=total)

        yield show
