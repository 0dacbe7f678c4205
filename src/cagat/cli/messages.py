"""What cagat has to say while a command runs."""

import logging
import sys


def show_messages() -> None:
    """Print what the package logs to standard error, in plain sentences, so that standard output stays the result."""
    logger = logging.getLogger("cagat")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
