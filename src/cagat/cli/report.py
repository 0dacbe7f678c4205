"""`cagat report`: finished runs side by side."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.output import show_messages


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
