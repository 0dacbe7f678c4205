"""Refuse what would not fit, before it is tried."""

import cagat.memory
from cagat.errors import DatasetError


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Raise :class:`DatasetError` unless there is free memory for `needed` bytes and as many again to work with."""
    try:
        cagat.memory.require_memory(2 * needed, what, remedy)
    except cagat.memory.OutOfMemoryError as error:
        raise DatasetError(str(error)) from error
