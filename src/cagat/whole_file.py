"""Write a file whole or not at all."""

import contextlib
import errno
import glob
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from cagat.errors import CagatError

# What a disk says; other errors may come from what is written, such as a download, and are its own.
_OF_THE_DISK = {
    getattr(errno, name)
    for name in (
        "EACCES", "EBUSY", "EDQUOT", "EEXIST", "EFBIG", "EIO", "EISDIR", "ELOOP", "ENAMETOOLONG", "ENOENT", "ENOSPC",
        "ENOTDIR", "ENXIO", "EPERM", "EROFS", "ESTALE", "ETXTBSY",
    )
    if hasattr(errno, name)
}  # fmt: skip
# A temporary file begins with so much of the name that it will get: a name as long as a disk takes leaves no room.
_KNOWN_BY = 40


class WriteError(CagatError, OSError):
    """A file cannot be written: the disk is full, the directory is not ours, and the like."""


def written_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` with a temporary file beside `path`, and move it there when, and only when, all went well.

    Whatever happens, `path` is the old file or the new one; after a loss of power, too, since the new one is on the
    disk before it takes its place.

    Raises:
        WriteError: The disk is full, or it may not be written there; a file that was there before is untouched.
    """
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        name = path.with_name(f".{path.name[:_KNOWN_BY]}.{secrets.token_hex(4)}.part")
        # Not by tempfile, whose files only their owner may read: who else may is for the user's umask to say.
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def put_whole(path: Path, content: bytes | str) -> None:
    """Write just this, whole or not at all; see :func:`written_whole`.

    What is not text in a text, as the name of a file need not be, is written as a backslash and a number.
    """
    # Pages and tables show such names to people. What programs read again, JSON and YAML, has escaped them already.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    written_whole(path, lambda stream: stream.write(data))


def remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed while they wrote `path` left behind."""
    for leftover in path.parent.glob(f".{glob.escape(path.stem[:_KNOWN_BY])}*.part"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what a disk says while `path` is written into a :class:`WriteError` that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, CagatError) or error.errno not in _OF_THE_DISK:
            raise
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
        remedy = "Make room, or choose another place." if full else "Choose another place."
        raise WriteError(f"{path}: cannot be written ({error.strerror}). {remedy}") from error
