"""Refuse what would not fit, before it is tried."""

import psutil

from cagat.errors import DatasetError


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Raise :class:`DatasetError` if `needed` bytes are more than half of the memory that is free."""
    free = psutil.virtual_memory().available
    if needed > free // 2:
        raise DatasetError(
            f"{what} would take {needed / 2**30:.1f} GiB, more than half of the {free / 2**30:.1f} GiB of free memory. "
            f"{remedy}"
        )
