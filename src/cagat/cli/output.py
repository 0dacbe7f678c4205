"""What commands print beside their result."""

import logging
import sys


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


def duration(seconds: float) -> str:
    """A time that people can read."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
