"""Random command lines, drawn from the commands' own options."""

import random
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from cagat.cli import app
from fault_kinds.fault import Fault, Outcome
from fault_kinds.processes import Ended, command

_GRAPH = "synthetic:nodes=60,degree=4,classes=2,features=6,seed=0"
_EXIT_CODES = (0, 1, 2, 3)
_MOST_SECONDS = 120.0
_SHORT = f"--dataset {_GRAPH} --labels 3 --val-labels 3 --epochs 2 --threads 1"
# What makes each command do its work, and soon; at the end of a line, since of an option given twice the last counts.
# `bench` is left out: it measures for minutes, whatever it is given.
SOUND: dict[str, list[str]] = {
    name: line.split()
    for name, line in {
        "data convert": "--edges edges.csv graph.npz",
        "data fetch": "cora",
        "data info": _GRAPH,
        "data list": "",
        "demo": "--epochs 1",
        "embed": "run --out hidden.npz",
        "evaluate": "run",
        "explore": "run --out page.html",
        "models": "",
        "predict": "run --out labels.csv",
        "report": "run --out report",
        "reproduce": f"table1 --datasets {_GRAPH} --methods labelprop --labels 3 --splits 1 --jobs 1",
        "train": _SHORT,
        "tune": f"--out search --model mlp --dataset {_GRAPH} --labels 3 --splits 1 --trials 1 --epochs 2",
    }.items()
}
_LONG = {"demo", "reproduce", "tune"}
"""Without their end these work for minutes."""
_ODD = ("", "-1", "0", "1", "0.5", "nan", "inf", "-inf", "1e400", "3.7", "9" * 25, "abc", "é\u202e", "--", "null", "[]")
_ODD += ("\udcff", "2", "5")  # The first is the name of a file that is not UTF-8, as Python has it.
_WORDS = ("cora", _GRAPH, "synthetic:nodes=", "synthetic:nodes=-1", "nowhere", "run", ".", "/dev/null", "cagat", "gat")
_WORDS += ("gcn", "l2", "none", "full", "edges", "sym", "cpu", "cuda", "out.csv", "out.parquet", "out.npz", "karate")
_WORDS += ("config.yaml", "config.yaml/x", "n" * 300, "n" * 245 + ".csv", "closed", "closed/x", "no/such/place")


def random_command_lines(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Draw command lines, run them, and look at how they end."""
    template, home = folder / "template", folder / "home"
    template.mkdir()
    # Some of the random paths lead somewhere.
    command("train", *_SHORT.split(), "--no-baselines", "--out", "run", folder=template).wait()
    (template / "edges.csv").write_text("source,target\n0,1\n1,2\n2,0\n")
    (template / "config.yaml").write_text(f"dataset: {_GRAPH}\nlabels: 3\nval_labels: 3\nepochs: 2\n")
    for line in random_lines(tries, draw):
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(template, home)
        (home / "closed").mkdir(mode=0)
        ended = command(*line, folder=home, obeys=True).wait(_MOST_SECONDS)
        (home / "closed").chmod(0o755)
        yield Outcome(shlex.join(line).encode(errors="backslashreplace").decode(), wrong_end(line, ended))


def random_lines(count: int, draw: random.Random) -> list[list[str]]:
    """So many command lines, no two of them the same; the sound ones first."""
    lines = {(*name.split(), *sound): None for name, sound in SOUND.items()}
    parameters = _parameters()
    while len(lines) < count:
        name = draw.choice(list(SOUND))
        sound = name in _LONG or draw.random() < 0.5
        # A second name behind a sound one is one too many.
        drawable = [one for one in parameters[name] if not (sound and one.param_type_name == "argument")]
        line = name.split()
        for parameter in draw.sample(drawable, min(len(drawable), draw.randint(0, 2 if sound else 4))):
            line += _given(parameter, draw, _ODD if name in _LONG else _ODD + _WORDS)
        if sound:
            line += SOUND[name]
        elif name == "train":
            line += ["--epochs", draw.choice(["1", "2", "0", "x"])]
        lines.setdefault(tuple(line))
    return [list(line) for line in lines][:count]


def _given(parameter: Any, draw: random.Random, values: tuple[str, ...]) -> list[str]:
    if parameter.param_type_name == "argument":
        return [draw.choice(values)]
    option = draw.choice([*parameter.opts, *parameter.secondary_opts])
    return [option] if parameter.is_flag else [option, draw.choice(values)]


def _parameters() -> dict[str, list[Any]]:
    """The options and arguments of every command."""
    commands, found = typer.main.get_command(app), {}
    for name in SOUND:
        member: Any = commands
        for part in name.split():
            member = member.commands[part]
        found[name] = [parameter for parameter in member.params if parameter.name != "help"]
    return found


def wrong_end(line: list[str], ended: Ended) -> str:
    """What is wrong with how a line ended; a process that never came to cagat says nothing, and that is wrong, too."""
    if ended.code not in _EXIT_CODES or ended.traceback:
        return f"exit code {ended.code}: {ended.err[-2000:]}"
    # Only wrong usage may be answered on standard output, and only what went well may leave standard error empty.
    said = ended.err if ended.code in (1, 3) else ended.err + ended.out
    if not said.strip():
        return f"exit code {ended.code}, but nothing was said"
    if ended.code != 0 and any(line == [*name.split(), *sound] for name, sound in SOUND.items()):
        return f"exit code {ended.code}, although the line is sound: {ended.err[-2000:]}"
    return ""


COMMAND_LINES = Fault(
    "command-lines",
    "random command lines, drawn from the commands' own options",
    "exit code 0, 1, 2 or 3 and a message, never a traceback; a sound line: 0",
    tries=150,
    quick=40,
    run=random_command_lines,
)
