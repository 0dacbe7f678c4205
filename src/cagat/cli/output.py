"""What commands print beside their result."""

import logging
import sys
from collections.abc import Callable
from inspect import getdoc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


class _StandardError(logging.Handler):
    """Prints each message as it is, to whatever is standard error then: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def show_messages() -> None:
    """Print what the package logs to standard error, in plain sentences, so that standard output stays the result."""
    logger = logging.getLogger("cagat")
    logger.handlers = [_StandardError()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def progress(*columns: "str | ProgressColumn", transient: bool = True) -> "Progress":
    """Bars on standard error, on a terminal and nowhere else."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


def help_text(command: Callable[..., Any]) -> str:
    """The docstring of a command, each paragraph in one line; rich would take [this] for a style."""
    text = (getdoc(command) or "").replace("[", "\\[")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def duration(seconds: float) -> str:
    """A time that people can read."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
