import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from cagat.cli import app

COMMANDS = sorted(name for name in typer.main.get_command(app).commands if name != "data")
PARTS = [("data", name) for name in ("list", "info", "fetch", "convert")]


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, words, env={"COLUMNS": "80", "TERM": "dumb"})
    assert done.exit_code == 0, done.output
    return done.output


def test_without_arguments_ten_lines_say_what_it_can_do():
    lines = shown().splitlines()
    assert len(lines) == 10
    named = {line.split()[1] for line in lines if line.startswith("  cagat ")}
    assert named == {"demo", "label", "train", "predict", "evaluate"}
    assert max(map(len, lines)) <= 100


def test_help_names_every_command_in_a_panel():
    text = shown("--help")
    for name in (*COMMANDS, "data"):
        assert f"│ {name} " in text
    assert all(f"─ {panel} ─" in text for panel in ("Label and train", "Use a trained model", "Compare models"))


@pytest.mark.parametrize("words", [*((name,) for name in COMMANDS), *PARTS], ids=" ".join)
def test_every_option_is_explained(words):
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    assert command.help.split("\n\n")[0].endswith(".")
    for parameter in command.params:
        text = parameter.help or ""
        assert text, f"{words}: {parameter.name} has no help"
        assert text[0].isupper(), text
        assert text.endswith((".", ")")), text
    shown(*words, "--help")


@pytest.mark.parametrize(("name", "extra"), [("label", "cagat[label]"), ("explore", "cagat[explore]")])
def test_an_extra_is_not_taken_for_a_style(name, extra):
    assert f"pip install '{extra}'" in " ".join(shown(name, "--help").split())


def test_help_does_not_wait_for_torch():
    code = "import sys, cagat.cli as c\ntry: c.app(['train', '--help'])\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "False"
