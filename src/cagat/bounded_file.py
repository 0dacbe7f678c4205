"""Read a file of which it is known how large it may be."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast


def open_regular(path: Path) -> BinaryIO:
    """Open a file to be read, but neither a directory nor a device nor a pipe, which may have no end or never begin.

    Raises:
        OSError: It is none, or cannot be opened; its `strerror` says so.
    """
    # What was opened is asked what it is, not its name before that: the name may mean another file a moment later.
    stream = open(path, "rb", opener=_at_once)  # noqa: SIM115 (the caller closes it)
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return cast("BinaryIO", stream)


def size_of(stream: BinaryIO) -> int:
    """The number of bytes of an open file."""
    return os.fstat(stream.fileno()).st_size


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes.

    Raises:
        OSError: It is larger, no regular file, or cannot be read; its `strerror` says so.
    """
    with open_regular(path) as stream:
        # A file may grow while it is read, so that its size alone is no bound.
        content = stream.read(most + 1) if size_of(stream) <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EINVAL, f"it is larger than {most} bytes", str(path))
    return content


def _at_once(name: str, flags: int) -> int:
    """Open without waiting: a pipe would else wait for somebody who writes into it."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
