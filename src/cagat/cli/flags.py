"""Flags that are made from settings, which declare their type, range, default and help."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from cagat.settings import SETTINGS, Setting


def with_settings(names: Iterable[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let typer see a flag for each of these settings in place of a command's ``**flags``, which are those given."""
    settings = {name: SETTINGS[name] for name in names}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        *own, _ = signature(command).parameters.values()

        @wraps(command)
        def run(**values: Any) -> None:
            command(**{key: value for key, value in values.items() if value is not None or key not in settings})

        parameters = [*map(_flag, settings.values()), *(one.replace(kind=Parameter.KEYWORD_ONLY) for one in own)]
        vars(run)["__signature__"] = Signature(parameters)
        return run

    return decorate


def _flag(setting: Setting) -> Parameter:
    """The parameter of the command that sets a setting."""
    name = setting.name.replace("_", "-")
    has_default = setting.default is not None and setting.default is not False
    option = typer.Option(
        f"--{name}/--no-{name}" if setting.kind is bool else f"--{name}",
        help=f"{setting.text[:-1]} (default: {setting.default})." if has_default else setting.text,
        rich_help_panel=setting.group,
        metavar="|".join(setting.choices) or None,
        show_default=False,
    )
    return Parameter(
        setting.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[setting.kind | None, option]
    )
