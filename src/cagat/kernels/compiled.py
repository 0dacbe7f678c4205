"""Compiling loops, once for all processes where that is possible."""

import contextlib
import ctypes
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numba

# What is raised if kept code cannot be written (no directory, a full disk) or read (a broken file).
_NOT_KEPT = (RuntimeError, OSError, EOFError, pickle.UnpicklingError)

CFunction = Callable[[int], None]
"""A function that C can call, too, and that takes an address; while it runs, it does not hold the GIL."""

# Sums may be reordered into vector lanes and multiply-adds fused. The flags that would let the compiler assume that
# there are no NaN and no infinities are left out: a broken input must show in the output.
FAST_MATH = ("reassoc", "contract", "nsz")


class compiled:  # noqa: N801  It is used as a decorator.
    """A compiled loop whose machine code is kept on disk, unless that is impossible: then it lives with the process."""

    def __init__(self, function: Callable[..., None]) -> None:
        functools.update_wrapper(self, function)
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
    signature = numba.types.void(numba.types.voidptr)
    try:
        code = numba.cfunc(signature, fastmath=set(FAST_MATH), cache=True)(function)
    except _NOT_KEPT:
        code = numba.cfunc(signature, fastmath=set(FAST_MATH))(function)
    callable_from_python = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(code.address or 0))
    callable_from_python.code = code  # type: ignore[attr-defined]  # It must live as long.
    return callable_from_python
