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
from cagat.cli.output import help_text
from cagat.cli.reproduce import repeated_options, reproduce
from cagat.cli.suggest import suggest
from cagat.cli.train import train
from cagat.cli.trained import doubts, embed, evaluate, explore, predict, report
from cagat.cli.tune import tune

app = typer.Typer(
    name="cagat",
    help="Label the nodes of a graph from a few labels, with Context-aware Graph Attention Networks (CaGAT).",
    add_completion=False,
    pretty_exceptions_enable=False,
)
_OVERVIEW = """\
cagat labels the nodes of a graph from a few labels.

  cagat demo                          compare CaGAT with GAT on Cora, in about a minute
  cagat label GRAPH                   label a graph in your browser while a model learns
  cagat train --dataset GRAPH         train a model and save it in a run directory, RUN
  cagat predict RUN --out FILE.csv    label every node of the graph
  cagat evaluate RUN                  see how accurate the model is; cagat explore RUN shows why

GRAPH is a name from `cagat data list`, or a directory with edges.csv, features.csv and labels.csv.
All commands: cagat --help. One command: cagat COMMAND --help."""

_COMMANDS = {
    "Label and train": (demo, label, suggest, train),
    "Use a trained model": (predict, evaluate, doubts, embed, explore),
    "Compare models": (models, report, tune, reproduce, bench),
}
for _panel, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(help=help_text(_command), rich_help_panel=_panel)(_command)
app.add_typer(data.app, name="data", rich_help_panel="Label and train")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(_OVERVIEW)


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
        _fail(f"{place}{error.strerror or error}. Check the path, its permissions and the free space.", 1)
    except (MemoryError, RuntimeError) as error:
        # torch tells that memory is short with a RuntimeError of several lines.
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        _fail("Out of memory. Use fewer units, heads, layers or --jobs, or a machine with more memory.", 1)


def _fail(message: str, exit_code: int) -> NoReturn:
    typer.secho(f"Error: {message}", err=True, fg=typer.colors.RED)
    sys.exit(exit_code)
