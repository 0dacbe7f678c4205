"""Refuse what would not fit, before it is tried."""

import cagat.memory
from cagat.errors import DatasetError

_BOMB_BYTES = 2**29
_BOMB_RATIO = 100


def require_plausible(what: str, needed: int, packed: int) -> None:
    """Raise :class:`DatasetError` if a small file says that it unpacks to very much, as a zip bomb does."""
    if needed > max(_BOMB_BYTES, _BOMB_RATIO * packed):
        raise DatasetError(
            f"{what} would unpack to {needed} bytes, {needed // max(packed, 1)} times what the file has, as files do "
            "that are made to fill the memory. If it is to be trusted, write it without compression."
        )


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Raise :class:`DatasetError` unless there is free memory for `needed` bytes and as many again to work with."""
    try:
        cagat.memory.require_memory(2 * needed, what, remedy)
    except cagat.memory.OutOfMemoryError as error:
        raise DatasetError(str(error)) from error
