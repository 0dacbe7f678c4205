"""`cagat explore`: a page to look at a trained model with."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.messages import show_messages
from cagat.cli.trained import RunArgument


def explore(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="The page to write: one .html file that needs no other.")] = Path(
        "explore.html"
    ),
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
