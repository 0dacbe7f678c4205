"""Writing files whole or not at all, and reading them within bounds."""

import contextlib
import errno
import glob
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import filelock

from cagat.errors import CagatError

# How much of the final name a temporary file starts with: a name of the longest length leaves no room for more.
_PREFIX = 40

# For so many seconds in all, another program, such as a virus scanner, may have a file open on Windows.
_PAUSES = (0.01, 0.03, 0.1, 0.3, 1.0)


class WriteError(CagatError, OSError):
    """A file cannot be written: the disk is full, the directory is not ours, and the like."""


class InUseError(CagatError):
    """Another process works in the same directory."""


def atomic_write(path: Path, content: bytes | str | Callable[[BinaryIO], object], previous: Path | None = None) -> None:
    """Write a file whole or not at all.

    A temporary file beside ``path`` is written, flushed to the disk, and moved to ``path`` only if all went well: at
    any moment, also after a loss of power, ``path`` is the old file or the new one.

    Args:
        path: The file; its directory is made if it is missing.
        content: Bytes, text, or a function that writes into the stream it is given. Surrogates in text, which stem
            from file names that are not UTF-8, are written as backslash escapes.
        previous: Where to keep the file that was there before. Between its renaming and that of the new one, ``path``
            is missing for a moment.

    Raises:
        WriteError: The disk is full, or the place is not writable; a file that was there before is untouched.
    """
    if isinstance(content, str):
        content = content.encode(errors="backslashreplace")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not by tempfile, whose files only their owner may read: that is for the user's umask to say.
        part = path.with_name(f".{path.name[:_PREFIX]}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as stream:
                if isinstance(content, bytes):
                    stream.write(content)
                else:
                    content(stream)
                stream.flush()
                os.fsync(stream.fileno())
            if previous is not None and path.exists():
                replace_file(path, previous)
            replace_file(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def replace_file(source: Path, target: Path) -> None:
    """As :func:`os.replace`; on Windows, which refuses it while another program has a file open, with patience."""
    for pause in _PAUSES if sys.platform == "win32" else ():
        try:
            return os.replace(source, target)
        except PermissionError:  # noqa: PERF203  It waits anyway.
            time.sleep(pause)
    return os.replace(source, target)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that processes left behind when they were killed while writing ``path``."""
    for leftover in path.parent.glob(f".{glob.escape(path.stem[:_PREFIX])}*.part"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an error of the disk while ``path`` is written into a :class:`WriteError` with file and remedy."""
    try:
        yield
    except OSError as error:
        # What is written may come from a network, whose errors are passed on.
        if error.errno is None or isinstance(error, (CagatError, ConnectionError, TimeoutError)):
            raise
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
        remedy = "Make room, or choose another place." if full else "Choose another place."
        raise WriteError(f"{path}: cannot be written ({error.strerror}). {remedy}") from error


def take_room(file: int, size: int) -> None:
    """Make an open file so long, with room on the disk: a full one would kill the process that writes to a mapping."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # Where the system cannot take room beforehand, as macOS.
        os.ftruncate(file, size)


@contextlib.contextmanager
def directory_lock(path: Path) -> Iterator[None]:
    """Make a directory and keep it for oneself."""
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path / ".lock", timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise InUseError(
                f"{path}: another process is at work here. Wait for it, or choose another place."
            ) from None
    try:
        yield
    finally:
        lock.release()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; directories, devices and pipes, which may never end, are refused.

    Raises:
        OSError: It is no regular file, or cannot be opened; its `strerror` says so.
    """
    # Without blocking: a pipe would wait for somebody who writes into it. The open file is asked what it is, not its
    # name before that, which may mean another file a moment later.
    flag = getattr(os, "O_NONBLOCK", 0)
    stream = open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return stream


def size_of(stream: BinaryIO) -> int:
    """The number of bytes of an open file."""
    return os.fstat(stream.fileno()).st_size


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a regular file of at most ``most`` bytes.

    Raises:
        OSError: It is larger, no regular file, or cannot be read; its `strerror` says so.
    """
    with open_regular(path) as stream:
        # A file may grow while it is read, so that its size alone is no bound.
        content = stream.read(most + 1) if size_of(stream) <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EINVAL, f"it is larger than {most} bytes", str(path))
    return content
