"""The command line. Heavy imports happen inside the commands, so that `cagat --help` is instant."""

import io
import os
import sys
from typing import NoReturn

import typer

from cagat import __version__
from cagat.cli import data
from cagat.cli.bench import bench
from cagat.cli.demo import demo
from cagat.cli.label import label
from cagat.cli.models import models
from cagat.cli.reproduce import repeated_options, reproduce
from cagat.cli.suggest import suggest
from cagat.cli.train import train
from cagat.cli.trained import doubts, embed, evaluate, explore, predict, report
from cagat.cli.tune import tune

app = typer.Typer(
    name="cagat",
    help="Context-aware Graph Attention Networks: label the nodes of a graph from few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    *(demo, suggest, label, train, predict, evaluate, doubts, embed, explore, report),
    *(tune, reproduce, bench, models),
)
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(data.app, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Options that stand before any command."""


def main() -> None:
    """Run the command line; an error of the user's input becomes one message, not a traceback."""
    from cagat.cli.start_up import defer_imports
    from cagat.errors import CagatError

    defer_imports()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # Names of files need not be text.
    if sys.argv[1:2] == ["reproduce"]:
        sys.argv[1:] = repeated_options(sys.argv[1:])
    try:
        app()
    except CagatError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        # What nobody has put into better words: a directory that may not be read, a name that is too long.
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)[:200]}: "
        _fail(f"{place}{error.strerror or error}. Check the name, who may read and write there, and the space left.", 1)
    except (MemoryError, RuntimeError) as error:
        # torch tells that memory is short with a RuntimeError of several lines.
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        _fail("There is not enough memory. Ask for fewer units, heads, layers or --jobs, or take a larger machine.", 1)


def _fail(message: str, exit_code: int) -> NoReturn:
    typer.secho(f"Error: {message}", err=True, fg=typer.colors.RED)
    sys.exit(exit_code)
