"""Refusing work that does not fit, before it starts; and how much memory the work has taken."""

import contextlib
import sys
from pathlib import Path

import psutil

from cagat.errors import CagatError

# Where Linux says what a container may have, what it has, and how much of that are files that it can forget: in its
# version 2 and its version 1.
_CGROUPS = Path("/sys/fs/cgroup")
_CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


class OutOfMemoryError(CagatError, MemoryError):
    """The work would need more memory than the machine has free."""


def require_memory(needed: int, what: str, alternative: str) -> None:
    """Raise :class:`OutOfMemoryError` unless ``needed`` bytes are free.

    Args:
        needed: An estimate of the bytes that the work takes at its peak.
        what: The work, as the subject of a sentence.
        alternative: What to do instead, as a sentence.
    """
    free = free_memory()
    if needed > free:
        raise OutOfMemoryError(
            f"{what} would need {_readable(needed)} ({needed} bytes), but only {_readable(free)} are free. "
            f"{alternative}"
        )


def free_memory() -> int:
    """How much this process may still take: what is free, or what is left to its container if that is less."""
    most, used = _of_the_container()
    return min(psutil.virtual_memory().available, max(0, most - used))


def total_memory() -> int:
    """The memory of the machine, or of the container if that has less."""
    return min(psutil.virtual_memory().total, _of_the_container()[0])


def _of_the_container() -> tuple[int, int]:
    """What the container that this process runs in may have, and what it has, without files that can be read again."""
    for names in _CGROUP_FILES:
        limit, current, parts = (_CGROUPS / name for name in names)
        with contextlib.suppress(OSError, ValueError):  # Other versions of Linux have others; "max" is no limit.
            most, used = int(limit.read_text()), int(current.read_text())
            with contextlib.suppress(OSError, ValueError, KeyError):
                used -= int(dict(line.split() for line in parts.read_text().splitlines())["inactive_file"])
            return most, used
    return sys.maxsize, 0


def peak_memory() -> int:
    """The most memory that this process has had at any time, in bytes."""
    try:
        import resource
    except ImportError:  # Windows.
        return int(psutil.Process().memory_info().peak_wset)  # type: ignore[attr-defined]
    # Linux counts in kilobytes, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _readable(size: int) -> str:
    power = min(max(0, size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.4g} {('bytes', 'kiB', 'MiB', 'GiB', 'TiB')[power]}"
