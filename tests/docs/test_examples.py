"""Every example of the README and the docs: Python is run, commands are checked, and those of the first page run."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from typer.main import get_command
from typer.testing import CliRunner

from cagat.cli import app
from cagat.cli.reproduce import repeated_options

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
    called = commands(ROOT / "docs" / "start.md")
    assert len(called) >= 6
    for words in called:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output, done.exception)
    assert (workplace / "first.html").stat().st_size > 1e6
    assert (workplace / "compared.md").exists()


def test_pages_show_what_is_there():
    """Links between pages and to files of the repository lead somewhere."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
