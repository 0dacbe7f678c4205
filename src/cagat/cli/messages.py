"""What cagat has to say while a command runs."""

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
