"""How many threads our kernels use, and which: row-parallel execution on threads of our own, or on torch's.

numba offers three threading layers, and none serves a library: `workqueue` (its default where TBB is absent) aborts
the process when two Python threads enter it at once, `omp` aborts or hangs after a fork, `tbb` is both safe but exists
on x86 only; and whichever is loaded first binds every other numba user in the process. Our kernels therefore are
compiled without `parallel=True`, release the GIL, and work on a range of rows; this module hands the ranges out. Every
row is summed by one thread in one order, so the bits of a result do not depend on the number of threads.

torch's threads on the CPU are OpenMP's: after a parallel operation they wait for the next one, busily, for some
milliseconds. Threads of our own would have to share the cores with them, and on two cores the one that helps came when
the work was done. So where we can we do what torch does, and call compiled code on OpenMP's threads. It is the library
that torch has loaded that we ask, by the function to which a C compiler would translate ``#pragma omp parallel``.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cagat.kernels.compiled import CFunction

# A block of rows with fewer scalar multiplications than this stays with the calling thread: on Cora's shared-weight
# product two threads took as long as one or longer (two runs, one virtual machine), presumably for the waking.
_SMALLEST_BLOCK = 600_000

# More blocks than threads: if the machine is busy and a thread is late, the others take over what it would have done.
_BLOCKS_PER_THREAD = 4

_wanted: int | None = None


def set_kernel_threads(number: int | None) -> None:
    """Let our kernels use this many threads, whatever torch uses; ``None`` for as many as torch.

    The bits of our results do not depend on the number of threads, those of torch's dense products do: with torch on
    one thread and the kernels on many, a computation is repeatable and still parallel.
    """
    global _wanted
    if number is not None and number < 1:
        raise ValueError(f"kernels need at least 1 thread, got {number}")
    _wanted = number


def kernel_threads() -> int:
    """The number of threads our kernels may use now."""
    return torch.get_num_threads() if _wanted is None else _wanted


class _Task:
    """A product whose blocks of rows are taken, one after the other, by whichever thread is free."""

    def __init__(self, kernel: Callable[..., None], arguments: tuple[Any, ...], bounds: list[int]) -> None:
        self._kernel = kernel
        self._arguments = arguments
        self._bounds = bounds
        self._lock = threading.Lock()
        self._all_done = threading.Lock()
        self._all_done.acquire()
        self._taken = 0
        self._unfinished = len(bounds) - 1
        self._error: BaseException | None = None

    def take_part(self) -> None:
        """Work on blocks until none is left to take."""
        last = len(self._bounds) - 1
        while True:
            with self._lock:
                block = self._taken
                if block == last:
                    return
                self._taken += 1
            try:
                self._kernel(*self._arguments, self._bounds[block], self._bounds[block + 1])
            except BaseException as error:  # It is raised again by the thread that waits.
                self._error = error
            with self._lock:
                self._unfinished -= 1
                if self._unfinished == 0:
                    self._all_done.release()

    def wait(self) -> None:
        """Wait for the blocks that other threads took."""
        self._all_done.acquire()
        if self._error is not None:
            raise self._error


class _Invitation:
    """A call of a C function that other threads call, too."""

    def __init__(self, function: "CFunction", argument: int, alive: Any) -> None:
        self._function = function
        self._argument = argument
        self._alive = alive

    def take_part(self) -> None:
        """Help, if there is still something to do."""
        self._function(self._argument)


class RowThreads:
    """Splits the rows of a product among daemon threads, started when they are first needed.

    It may be used by several Python threads at once: they share the workers. After a fork the child, which inherits
    none of its parent's threads, starts its own.
    """

    def __init__(self) -> None:
        self._start_afresh()
        if hasattr(os, "register_at_fork"):  # Windows has no fork.
            os.register_at_fork(after_in_child=self._start_afresh)

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[_Task | _Invitation] = SimpleQueue()
        self._workers = 0

    def run(
        self, kernel: Callable[..., None], rowptr: NDArray[Any], arguments: tuple[Any, ...], width: int, threads: int
    ) -> None:
        """Call ``kernel(*arguments, start, stop)`` on ranges of rows that together cover ``rowptr``'s.

        Args:
            kernel: A compiled function that releases the GIL and writes only what belongs to its rows.
            rowptr: The row pointers by which the work is balanced.
            arguments: What the kernel takes before the range.
            width: The number of scalar multiplications for each entry.
            threads: The largest number of threads to work at once.
        """
        blocks = number_of_blocks(rowptr, width, threads)
        if blocks == 1:
            kernel(*arguments, 0, len(rowptr) - 1)
            return
        task = _Task(kernel, arguments, balanced_bounds(rowptr, blocks))
        helpers = min(threads, blocks) - 1
        tasks = self._queue_with_workers(helpers)
        for _ in range(helpers):
            tasks.put(task)
        task.take_part()
        task.wait()

    def together(self, function: "CFunction", argument: int, threads: int, alive: Any) -> None:
        """Call ``function(argument)`` on several threads at once, which share out the work among themselves.

        They are torch's threads where these can be had (:func:`torch_threads`), else ours. The function
        must return to the caller only when all work is done, and must leave alone all but its argument if it is called
        after that: a thread that comes late finds nothing to do.

        Args:
            function: A compiled function.
            argument: The address that it takes.
            threads: How many threads may call it.
            alive: What must live until the last of them is back.
        """
        if threads > 1:
            run_on_torch = torch_threads()
            if run_on_torch is not None:
                run_on_torch(function, argument, threads, 0)
                return
            tasks = self._queue_with_workers(threads - 1)
            for _ in range(threads - 1):
                tasks.put(_Invitation(function, argument, alive))
        function(argument)

    def _queue_with_workers(self, wanted: int) -> "SimpleQueue[_Task | _Invitation]":
        if self._workers < wanted:
            with self._lock:
                while self._workers < wanted:
                    threading.Thread(target=_work, args=(self._tasks,), name="cagat-rows", daemon=True).start()
                    self._workers += 1
        return self._tasks


def _work(tasks: "SimpleQueue[_Task | _Invitation]") -> None:
    while True:
        tasks.get().take_part()


def number_of_blocks(rowptr: NDArray[Any], width: int, threads: int, smallest: int = _SMALLEST_BLOCK) -> int:
    """Into how many blocks the rows of a product are split, if each entry takes ``width`` multiplications."""
    if threads == 1:
        return 1
    num_rows = len(rowptr) - 1
    work = (int(rowptr[-1]) + num_rows) * width
    return max(1, min(threads * _BLOCKS_PER_THREAD, work // smallest, num_rows))


def balanced_bounds(rowptr: NDArray[Any], blocks: int) -> list[int]:
    """The first rows of so many blocks with about as many entries each, and the end of the last."""
    if blocks == 1:
        return [0, len(rowptr) - 1]
    targets = np.arange(1, blocks) * (int(rowptr[-1]) / blocks)
    return [0, *np.searchsorted(rowptr, targets).tolist(), len(rowptr) - 1]


row_threads = RowThreads()


_is_forked = False


def _notice_fork() -> None:
    global _is_forked
    _is_forked = True


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_notice_fork)


def torch_threads() -> Callable[..., None] | None:
    """``run(function, argument, threads, flags)``, which calls a C function on several threads and waits for them.

    There is none where torch is built otherwise, nor in a forked child: OpenMP would wait there for threads that only
    the parent has. Nor outside of Linux, where this was never tried.
    """
    return None if _is_forked else _parallel_region()


@cache
def _parallel_region() -> Callable[..., None] | None:
    if sys.platform != "linux":
        return None
    try:
        # The system's linker also looks into the libraries that this one has loaded.
        function = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    function.restype = None
    return function
