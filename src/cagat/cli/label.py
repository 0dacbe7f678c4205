"""`cagat label`: label a graph in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.data import ColumnsFile, DataDir, Label, Node, Source, Target, reading
from cagat.cli.output import show_messages
from cagat.errors import CagatError


def label(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="A graph that `cagat data list` names, or a path.")],
    classes: Annotated[
        str | None, typer.Option(help="Names of classes, separated by commas; more can be added on the page.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="The file of labels (default: labels.csv, in GRAPH if that is a directory of tables)."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open no browser.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Write predictions and report from the labels that are there, and end.")
    ] = False,
    data_dir: DataDir = None,
    source: Source = None,
    target: Target = None,
    node: Node = None,
    label: Label = None,
    columns: ColumnsFile = None,
) -> None:
    """Label a graph in the browser, one suggested node after the other, with a model that learns as you go.

    Each label is on disk at once, in a file that `cagat train` reads. Stop with Ctrl-C, and start again to go on. A
    published graph by its name counts as one without labels. Needs: pip install 'cagat[label]'
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
    options = reading(source, target, node, label, columns)
    place = None if data_dir is None else str(data_dir)
    opened = open_graph(graph, classes=names, labels=labels, data_dir=place, reading=options)
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
        typer.echo(store.read_only or "Stop with Ctrl-C; all labels are on disk.")
        if not no_browser:
            import webbrowser

            webbrowser.open(server.address)
        server.serve()
    finally:
        session.close()
