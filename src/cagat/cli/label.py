"""`cagat label`: label a graph in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.data import DataDir
from cagat.cli.flags import with_settings
from cagat.cli.output import show_messages
from cagat.errors import CagatError
from cagat.settings import READING


@with_settings(READING)
def label(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="A name from `cagat data list`, or a path.")],
    classes: Annotated[str | None, typer.Option(help="Class names, separated by commas; add more on the page.")] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="The file of labels (default: labels.csv, inside GRAPH if that is a directory)."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 picks a free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address instead of opening a browser.")
    ] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Write predictions and a report from the labels so far, and exit.")
    ] = False,
    data_dir: DataDir = None,
    **flags: str,
) -> None:
    """Label a graph in your browser: cagat suggests nodes, and a model learns as you go.

    Every label is saved at once, in a file that `cagat train` reads. Stop with Ctrl-C; the same command continues. A
    published graph counts as unlabelled. Requires: pip install 'cagat[label]'
    """
    show_messages()
    try:
        from cagat.labelling.server import LabelServer
    except ImportError as error:
        raise CagatError(
            f"cagat label needs the package {error.name}. Install it with: pip install 'cagat[label]'"
        ) from error
    from cagat.labelling.open_graph import open_graph
    from cagat.labelling.results import write_results
    from cagat.labelling.session import Session

    names = [] if classes is None else [name for name in classes.split(",") if name.strip()]
    place = None if data_dir is None else str(data_dir)
    opened = open_graph(graph, classes=names, labels=labels, data_dir=place, reading=flags)
    store, nodes = opened.store, opened.graph.node_names
    if finish:
        files = write_results(opened.graph, store.numbered(nodes), opened.config, opened.directory, opened.command)
        typer.echo("\n".join(map(str, files)))
        return
    session = Session(*opened)
    try:
        server = LabelServer(session, port)
        typer.echo(f"Labels: {store.path} ({len(store.labels)} of {len(nodes)} nodes)")
        typer.echo(f"Page:   {server.address}")
        typer.echo(store.read_only or "Stop with Ctrl-C; all labels are saved.")
        if not no_browser:
            import webbrowser

            webbrowser.open(server.address)
        server.serve()
    finally:
        session.close()
