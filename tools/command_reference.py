"""The reference of commands, from the program itself."""

from pathlib import Path
from typing import Any

from typer.main import get_command

from cagat.cli import app
from cagat.settings import SETTINGS
from cagat.style import Table


def commands(_: Path) -> str:
    """A section per command: what it does, how it is called, and its options."""
    return "\n\n".join(_sections(get_command(app), "cagat")) + "\n"


def _sections(command: Any, name: str) -> list[str]:
    if hasattr(command, "commands"):
        return [text for key, one in command.commands.items() for text in _sections(one, f"{name} {key}")]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    own = [one for one in command.params if one not in arguments and not _is_a_setting(one, command)]
    called = " ".join([name, *(_value(one) for one in arguments), "[OPTIONS]"])
    parts = [f"## {name}", f"```text\n{called}\n```"]
    parts += [" ".join(_words(text)) for text in (command.help or "").split("\n\n")]
    if len(own) + len(arguments) < len(command.params):
        parts.append("Every [setting](settings.md) is an option, too.")
    rows = [[f"`{_value(one)}`", _help(one)] for one in arguments]
    rows += [[f"`{', '.join([*one.opts, *one.secondary_opts])}`", _help(one)] for one in own]
    if rows:
        parts.append(Table(["option", "meaning"], rows, words=2).markdown())
    return parts


def _is_a_setting(option: Any, command: Any) -> bool:
    """Whether the page of settings tells of it: of a command that has them all, or nearly so."""
    settings = sum(one.name in SETTINGS for one in command.params)
    return option.name in SETTINGS and settings > len(SETTINGS) // 2


def _value(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name = f"{name}..." if argument.nargs == -1 and not name.endswith("...") else name
    return name if argument.required else f"[{name.strip('[]')}]"


def _help(option: Any) -> str:
    text = " ".join(_words(option.help or ""))
    default = option.default
    if option.show_default is False or default in (None, False, ()) or callable(default) or "default" in text:
        return text
    return f"{text.rstrip('.')} (default: {default})."


def _words(text: str) -> list[str]:
    return text.replace("\b", "").split()
