"""Compiling loops, once for all processes where that is possible.

numba keeps machine code until the file of the loop itself changes. Our loops also call what stands in other files of
this package, so the name under which code is kept holds a hash of them all. It also holds the constants that code is
made for: numba numbers the variants of one name, and two processes that compile different ones at the same time would
give both the same number, and load each other's.
"""

import contextlib
import ctypes
import functools
import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import filelock
import numba
from numba.core.caching import FunctionCache

# What is raised if kept code cannot be written (no directory, a full disk) or read (a broken file).
_NOT_KEPT = (RuntimeError, OSError, EOFError, pickle.UnpicklingError)

# The longest that a process waits, in seconds, for another one that compiles the same; then it compiles, too.
_LONGEST_WAIT = 60

CFunction = Callable[[int], None]
"""A function that C can call, too, and that takes an address; while it runs, it does not hold the GIL."""

# Sums may be reordered into vector lanes and multiply-adds fused. The flags that would let the compiler assume that
# there are no NaN and no infinities are left out: a broken input must show in the output.
FAST_MATH = ("reassoc", "contract", "nsz")


_KERNELS = Path(__file__).parent


@functools.cache
def source_hash(package: Path = _KERNELS) -> str:
    """A hash of all files of a package: loops may call whatever stands in their own and in this one."""
    digest = hashlib.sha256()
    for path in sorted(package.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _named_by_sources(function: Callable[..., None]) -> Callable[..., None]:
    """A copy of a function under whose name numba keeps code for its constants, for as long as no source changes."""
    assert isinstance(function, FunctionType)
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__module__ = function.__module__
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    constants = [getattr(value, "__name__", str(value)) for value in held if isinstance(value, int | type)]
    own = Path(function.__code__.co_filename).parent
    hashes = [source_hash(), *([] if own == _KERNELS else [source_hash(own)])]
    copy.__qualname__ = "-".join([function.__qualname__, *hashes, *constants])
    return copy


class compiled:  # noqa: N801  It is used as a decorator.
    """A compiled loop whose machine code is kept on disk, unless that is impossible: then it lives with the process."""

    def __init__(self, function: Callable[..., None]) -> None:
        functools.update_wrapper(self, function)
        function = _named_by_sources(function)
        self._in_memory = numba.njit(nogil=True, fastmath=set(FAST_MATH))(function)
        self._call = self._in_memory
        # numba raises RuntimeError if it finds no directory to write to: a read-only installation and home.
        with contextlib.suppress(RuntimeError):
            self._call = numba.njit(nogil=True, fastmath=set(FAST_MATH), cache=True)(function)

    def __call__(self, *arguments: Any) -> None:
        """Run the loop."""
        try:
            self._call(*arguments)
        except Exception:
            # The kept code cannot be written (a full disk) or read (a broken file, of which unpickling can say
            # anything); what is wrong with the arguments is said again below.
            self._call = self._in_memory
            self._call(*arguments)


def compiled_for_c(function: Callable[[Any], None]) -> CFunction:
    """Compile a function that takes an address, at once, and keep its machine code if that is possible."""
    signature, function = numba.types.void(numba.types.voidptr), _named_by_sources(function)
    try:
        with _one_at_a_time(function):
            code = numba.cfunc(signature, cache=True)(function)
    except _NOT_KEPT:
        code = numba.cfunc(signature)(function)
    callable_from_python = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(code.address or 0))
    callable_from_python.code = code  # type: ignore[attr-defined]  # It must live as long.
    return callable_from_python


@contextlib.contextmanager
def _one_at_a_time(function: Callable[..., None]) -> Iterator[None]:
    """Let one process compile a function, and the others, which wait here, load what it has kept."""
    cache = FunctionCache(function)  # type: ignore[no-untyped-call]
    path = Path(cache.cache_path, f"{function.__qualname__}.lock".replace("<locals>", "locals"))
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, NotImplementedError):  # Nor can every disk lock: then all of them compile.
            stack.enter_context(filelock.FileLock(path, timeout=_LONGEST_WAIT))
        yield
