"""Processes that start at once: forked from one that has all modules loaded, but has no threads."""

import ctypes
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_MODULES = ("cagat.cli", "cagat.experiments.workers", "cagat.data", "cagat.estimator", "cagat.training")
_CAPABILITY_VERSION = 0x20080522
_OVERRIDE, _READ_SEARCH = 1, 2


class Ended(NamedTuple):
    """How a process ended: its exit code (`None` if it had to be killed) and what it printed."""

    code: int | None
    out: str
    err: str

    @property
    def traceback(self) -> bool:
        """Whether it ended in an error that nobody foresaw."""
        return "Traceback (most recent call last)" in self.err


class Forked:
    """A function that runs in a process of its own.

    Args:
        function: A function of a module; it may call `sys.exit`.
        arguments: What it is given.
        folder: Its working directory.
        obeys: Whether file permissions hold for it even if it is root's.
    """

    def __init__(self, function: Callable[..., object], *arguments: Any, folder: Path, obeys: bool = False) -> None:
        context = _context()
        readers, writers = zip(*(context.Pipe(duplex=False) for _ in range(2)), strict=True)
        self.process = context.Process(target=_started, args=(writers, folder, obeys, function, arguments))
        self.process.start()
        self._printed = [b"", b""]
        self._listeners = [threading.Thread(target=self._listen, args=pair) for pair in enumerate(readers)]
        for writer in writers:
            writer.close()
        for listener in self._listeners:
            listener.start()

    def wait(self, seconds: float | None = None) -> Ended:
        """Wait for its end, but only so long; then it is killed."""
        self.process.join(seconds)
        code = self.process.exitcode
        if code is None:
            self.kill()
        for listener in self._listeners:
            listener.join()
        return Ended(code, *(printed.decode(errors="replace") for printed in self._printed))

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        self.process.kill()
        self.process.join()

    def _listen(self, number: int, reader: Any) -> None:
        with reader:
            while block := os.read(reader.fileno(), 2**16):
                self._printed[number] += block


def command(*arguments: str, folder: Path, obeys: bool = False) -> Forked:
    """A command line of cagat, in a process of its own."""
    return Forked(_command, arguments, folder=folder, obeys=obeys)


@cache
def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_MODULES))
    return context


def _started(
    writers: Any, folder: Path, obeys: bool, function: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    for descriptor, writer in zip((1, 2), writers, strict=True):
        os.dup2(writer.fileno(), descriptor)
        writer.close()
    # Those of before may be in the middle of a file.
    sys.stdout, sys.stderr = (open(descriptor, "w", encoding="utf-8", closefd=False) for descriptor in (1, 2))  # noqa: SIM115
    os.chdir(folder)
    if obeys and os.geteuid() == 0:
        _give_up_override()
    try:
        function(*arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _command(arguments: tuple[str, ...]) -> None:
    from cagat.cli import main

    sys.argv = ["cagat", *arguments]
    main()


def _give_up_override() -> None:
    """Let file permissions hold in this process from now on, although it is root's."""
    libc, header = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # Effective, permitted and inheritable, twice.
    libc.capget(header, sets)
    for number in (0, 1):
        sets[number] &= ~(1 << _OVERRIDE | 1 << _READ_SEARCH) & 0xFFFFFFFF
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "cannot give up rights")
