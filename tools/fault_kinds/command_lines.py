"""Random command lines."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import typer.main
from hypothesis import strategies as st

from cagat.cli import app
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Ended, command

_GRAPH = "synthetic:nodes=60,degree=4,classes=2,features=6,seed=0"
_EXIT_CODES = (0, 1, 2, 3)
_MOST_SECONDS = 120.0
# It measures for minutes, whatever it is given.
_LEFT_OUT = "bench"
_SHORT = ("--dataset", _GRAPH, "--labels", "3", "--val-labels", "3", "--epochs", "2", "--threads", "1")
# What makes each command do its work, and soon; at the end of a line, since of an option given twice the last counts.
_SOUND: dict[str, tuple[str, ...]] = {
    "": (),
    "data convert": ("--edges", "edges.csv", "graph.npz"),
    "data fetch": ("karate",),
    "data info": (_GRAPH,),
    "data list": (),
    "demo": ("--epochs", "1"),
    "embed": ("run", "--out", "hidden.npz"),
    "evaluate": ("run",),
    "explore": ("run", "--out", "page.html"),
    "models": (),
    "predict": ("run", "--out", "labels.csv"),
    "report": ("run", "--out", "report"),
    "reproduce": (
        "table1",
        "--datasets",
        _GRAPH,
        "--methods",
        "labelprop",
        "--labels",
        "3",
        "--splits",
        "1",
        "--jobs",
        "1",
    ),
    "train": _SHORT,
    "tune": ("--model", "mlp", "--dataset", _GRAPH, "--labels", "3", "--splits", "1", "--trials", "1", "--epochs", "2"),
}
# Without their end these work for minutes.
_LONG = {"demo", "reproduce", "tune"}
_ODD = ("", "-1", "0", "1", "0.5", "nan", "inf", "-inf", "1e400", "3.7", "9" * 25, "abc", "é\u202e", "--", "null", "[]")
_WORDS = ("cora", _GRAPH, "synthetic:nodes=", "synthetic:nodes=-1", "nowhere", "run", ".", "/dev/null", "cagat", "gat")
_WORDS += (
    "gcn",
    "l2",
    "none",
    "full",
    "edges",
    "sym",
    "cpu",
    "cuda",
    "out.csv",
    "out.parquet",
    "out.npz",
    "config.yaml",
)
_WORDS += ("config.yaml/x", "n" * 300, "n" * 245 + ".csv", "closed", "closed/x", "no/such/place")


def random_command_lines(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Draw command lines from the options that the commands have, run them, and look at how they end."""
    _prepare(folder)
    drawn: list[list[str]] = []

    @hypothesis.seed(draw.randrange(2**32))
    @hypothesis.settings(
        max_examples=tries, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(_command_line())
    def collect(line: list[str]) -> None:
        drawn.append(line)

    collect()
    # Hypothesis may stop early where it finds nothing new; the last ones are then tried again.
    for number in range(tries):
        line = drawn[number % len(drawn)]
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(folder / "template", home)
        (home / "closed").mkdir(mode=0)
        ended = command(*line, folder=home, obeys=True).wait(_MOST_SECONDS)
        (home / "closed").chmod(0o755)
        yield Outcome(" ".join(line), _wrong(ended))


def _wrong(ended: Ended) -> str:
    if ended.code in _EXIT_CODES and not ended.traceback:
        return ""
    return f"exit code {ended.code}: {ended.err[-2000:]}"


def _prepare(folder: Path) -> None:
    """A directory with a trained run and a configuration, so that some of the random paths lead somewhere."""
    template = folder / "template"
    template.mkdir()
    command("train", *_SHORT, "--out", "run", folder=template).wait()
    (template / "edges.csv").write_text("source,target\n0,1\n1,2\n2,0\n")
    (template / "config.yaml").write_text(f"dataset: {_GRAPH}\nlabels: 3\nval_labels: 3\nepochs: 2\n")


@st.composite
def _command_line(draw: st.DrawFn) -> list[str]:
    commands = _commands()
    name = draw(st.sampled_from(sorted(commands)))
    line, is_sound = name.split(), name in _LONG or draw(st.booleans())
    # What may be given several times is added to what the end says, and would take long; a second name is one too many.
    parameters = [
        parameter
        for parameter in commands[name]
        if not (is_sound and (parameter.multiple or parameter.param_type_name == "argument"))
    ]
    for parameter in draw(st.lists(st.sampled_from(parameters), max_size=2 if is_sound else 5)) if parameters else []:
        line += _given(draw, parameter)
    if is_sound:
        line += _SOUND[name]
    elif name == "train":
        line += ["--epochs", draw(st.sampled_from(["1", "2", "0", "x"]))]
    return line


def _given(draw: st.DrawFn, parameter: Any) -> list[str]:
    value = draw(st.one_of(st.sampled_from(_ODD), st.sampled_from(_WORDS), st.integers(-3, 6).map(str)))
    if parameter.param_type_name == "argument":
        return [value]
    option = draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts]))
    return [option] if parameter.is_flag else [option, value]


def _commands() -> dict[str, list[Any]]:
    """Every command's name, with its options and arguments."""
    found: dict[str, list[Any]] = {"": []}

    def collect(group: Any, prefix: str) -> None:
        for name, member in group.commands.items():
            path = f"{prefix} {name}".strip()
            if hasattr(member, "commands"):
                collect(member, path)
            elif path != _LEFT_OUT:
                found[path] = [parameter for parameter in member.params if parameter.name != "help"]

    collect(typer.main.get_command(app), "")
    return found


COMMAND_LINES = Fault(
    "command-lines",
    "random command lines, drawn by hypothesis from the commands' own options",
    "exit code 0, 1, 2 or 3, never a traceback",
    tries=500,
    quick=40,
    run=random_command_lines,
)
