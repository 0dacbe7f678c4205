"""torch's own threads, for compiled code of ours.

torch's threads on the CPU are OpenMP's: after a parallel operation they wait for the next one, busily, for some
milliseconds. Threads of our own would have to share the cores with them, and on two cores the one that helps came when
the work was done. So where we can we do what torch does, and call compiled code on OpenMP's threads. It is the library
that torch has loaded that we ask, by the function to which a C compiler would translate ``#pragma omp parallel``.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache

import torch

_is_forked = False


def _notice_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_notice_fork)


def torch_threads() -> Callable[..., None] | None:
    """``run(function, argument, threads, flags)``, which calls a C function on several threads and waits for them.

    There is none where torch is built otherwise, nor in a forked child: OpenMP would wait there for threads that only
    the parent has.
    """
    return None if _is_forked else _parallel_region()


@cache
def _parallel_region() -> Callable[..., None] | None:
    try:
        # The system's linker also looks into the libraries that this one has loaded.
        function = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    function.restype = None
    return function
