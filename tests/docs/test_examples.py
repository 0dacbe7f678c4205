"""Every example runs: Python of the README and docs/, scripts of examples/, and the commands of the first tutorial."""

import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner

from cagat.cli import app
from cagat.cli.reproduce import repeated_options

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *kinds: str) -> list[str]:
    return [text for kind, text in FENCE.findall(page.read_text(encoding="utf-8")) if kind in kinds]


def commands(page: Path) -> list[list[str]]:
    """The words after `cagat` in every line of a shell that calls it."""
    lines = "\n".join(blocks(page, "sh", "console")).splitlines()
    called = [line.removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in called if line.startswith("cagat ")]


def pages(*kinds: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, *kinds)]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory of its own, with the examples where the README says they are."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(threads)


@pytest.mark.parametrize("page", pages("python"), ids=lambda page: page.name)
def test_python_runs_from_top_to_bottom(page, workplace):
    namespace = {"__name__": "__main__"}
    for number, text in enumerate(blocks(page, "python"), start=1):
        exec(compile(text, f"{page.name}, example {number}", "exec"), namespace)


@pytest.mark.parametrize("page", pages("sh", "console"), ids=lambda page: page.name)
def test_commands_have_the_options_they_are_shown_with(page):
    for words in commands(page):
        words = repeated_options(words) if words[0] == "reproduce" else words
        command, context = get_command(app), None
        while hasattr(command, "commands"):
            name = words.pop(0)
            assert name in command.commands, f"{page.name}: there is no command {name}"
            command = command.commands[name]
        context = command.make_context(name, words)
        assert context.params


def test_the_first_page_runs_as_it_is_written(workplace):
    called = commands(ROOT / "docs" / "tutorials" / "start.md")
    assert len(called) >= 6
    for words in called:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert (workplace / "first.html").stat().st_size > 1e6
    assert (workplace / "compared.md").exists()


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("own_csv.py", "--epochs 20"),
        ("pyg_training_loop.py", "--dataset karate --labels 5 --epochs 20"),
        ("choose_labels.py", "--dataset karate --rounds 2 --per-round 4 --epochs 20"),
    ],
)
def test_scripts_run(script, options, workplace, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, *options.split()])
    runpy.run_path(str(workplace / "examples" / script), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_every_script_is_run():
    run = {script for script, _ in test_scripts_run.pytestmark[0].args[1]}
    assert run == {path.name for path in (ROOT / "examples").glob("*.py")}
