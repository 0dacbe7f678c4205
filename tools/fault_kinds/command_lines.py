"""Random command lines."""

import random
import shlex
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
    "": ("--help",),
    "data convert": ("--edges", "edges.csv", "graph.npz"),
    "data fetch": ("cora",),
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
# What a command cannot do without, and what is drawn may take the place of; at the beginning of a sound line.
_NEEDED = {"tune": ("--out", "search")}
# Without their end these work for minutes.
_LONG = {"demo", "reproduce", "tune"}
_ODD = ("", "-1", "0", "1", "0.5", "nan", "inf", "-inf", "1e400", "3.7", "9" * 25, "abc", "é\u202e", "--", "null", "[]")
# The name of a file that is not UTF-8, as Python has it.
_ODD += ("\udcff",)
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
_WORDS += ("karate", "config.yaml/x", "n" * 300, "n" * 245 + ".csv", "closed", "closed/x", "no/such/place")

# On Cora these commands would work for minutes, too, since here a value drawn takes the place of that of the end.
_QUICK = (*(word for word in _WORDS if word != "cora"), "mlp", "labelprop")


def random_command_lines(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Draw command lines from the options that the commands have, run them, and look at how they end."""
    _prepare(folder)
    for line in _distinct_lines(tries, draw):
        home = folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(folder / "template", home)
        (home / "closed").mkdir(mode=0)
        ended = command(*line, folder=home, obeys=True).wait(_MOST_SECONDS)
        (home / "closed").chmod(0o755)
        yield Outcome(shlex.join(line).encode(errors="backslashreplace").decode(), _wrong(line, ended))


def _distinct_lines(count: int, draw: random.Random) -> list[list[str]]:
    """So many command lines, no two of them the same."""
    drawn: dict[tuple[str, ...], None] = {}
    # Hypothesis draws some lines twice, and may stop early; it is then asked again, with another seed.
    while len(drawn) < count:

        @hypothesis.seed(draw.randrange(2**32))
        @hypothesis.settings(
            max_examples=count, database=None, deadline=None, phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        @hypothesis.given(_command_line())
        def collect(line: list[str]) -> None:
            drawn.setdefault(tuple(line))

        collect()
    return [list(line) for line in drawn][:count]


def _wrong(line: list[str], ended: Ended) -> str:
    """What is wrong with how a line ended; a process that never came to cagat says nothing, and that is wrong, too."""
    if ended.code not in _EXIT_CODES or ended.traceback:
        return f"exit code {ended.code}: {ended.err[-2000:]}"
    # Only wrong usage may be told where the help is, and only what went well may leave standard error empty.
    said = ended.err if ended.code in (1, 3) else ended.err + ended.out
    if not said.strip():
        return f"exit code {ended.code}, but nothing was said"
    if ended.code != 0 and any(
        line == [*name.split(), *_NEEDED.get(name, ()), *sound] for name, sound in _SOUND.items()
    ):
        return f"exit code {ended.code}, although the line is sound: {ended.err[-2000:]}"
    return ""


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
    # Behind a name that is sound a second one is one too many.
    parameters = [
        parameter for parameter in commands[name] if not (is_sound and parameter.param_type_name == "argument")
    ]
    given = draw(st.lists(st.sampled_from(parameters), max_size=2 if is_sound else 5)) if parameters else []
    several = [parameter for parameter in given if is_sound and _several(parameter)]
    if is_sound:
        line += _NEEDED.get(name, ())
    for parameter in given:
        if parameter not in several:
            line += _given(draw, parameter, _WORDS)
    if is_sound:
        line += _without(_SOUND[name], {option for parameter in several for option in parameter.opts})
        # Behind the end, since an option of `reproduce` takes all values that follow it, names of tables, too.
        for parameter in several:
            line += _given(draw, parameter, _QUICK if name in _LONG else _WORDS)
    elif name == "train":
        line += ["--epochs", draw(st.sampled_from(["1", "2", "0", "x"]))]
    return line


def _several(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and parameter.multiple


def _without(sound: tuple[str, ...], options: set[str]) -> list[str]:
    """What makes a line sound, but for options that may be given several times and were: both would count."""
    left, arguments = [], iter(sound)
    for argument in arguments:
        if argument in options:
            next(arguments)
        else:
            left.append(argument)
    return left


def _given(draw: st.DrawFn, parameter: Any, words: tuple[str, ...]) -> list[str]:
    value = draw(st.one_of(st.sampled_from(_ODD), st.sampled_from(words), st.integers(-3, 6).map(str)))
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
    "exit code 0, 1, 2 or 3 and a message, never a traceback; a sound line: 0",
    tries=500,
    quick=40,
    run=random_command_lines,
)
