"""Refusing work that does not fit, before it starts; and how much memory the work has taken."""

import sys

import psutil

from cagat.errors import CagatError


class OutOfMemoryError(CagatError, MemoryError):
    """The work would need more memory than the machine has free."""


def require_memory(needed: int, what: str, alternative: str) -> None:
    """Raise :class:`OutOfMemoryError` unless ``needed`` bytes are free.

    Args:
        needed: An estimate of the bytes that the work takes at its peak.
        what: The work, as the subject of a sentence.
        alternative: What to do instead, as a sentence.
    """
    free = psutil.virtual_memory().available
    if needed > free:
        raise OutOfMemoryError(
            f"{what} would need {_readable(needed)} ({needed} bytes), but only {_readable(free)} are free. "
            f"{alternative}"
        )


def peak_memory() -> int:
    """The most memory that this process has had at any time, in bytes."""
    try:
        import resource
    except ImportError:  # Windows.
        return int(psutil.Process().memory_info().peak_wset)  # type: ignore[attr-defined]
    # Linux counts in kilobytes, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _readable(size: int) -> str:
    amount = float(size)
    for unit in ("bytes", "kiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"
