"""Row-parallel execution of compiled kernels, on threads of our own.

numba offers three threading layers, and none serves a library: `workqueue` (its default where TBB is absent) aborts
the process when two Python threads enter it at once, `omp` aborts or hangs after a fork, `tbb` is both safe but exists
on x86 only; and whichever is loaded first binds every other numba user in the process. Our kernels therefore are
compiled without `parallel=True`, release the GIL, and work on a range of rows; this module hands the ranges out. Every
row is summed by one thread in one order, so the bits of a result do not depend on the number of threads.
"""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A block of rows with fewer scalar multiplications than this is done sooner than another thread wakes up.
_SMALLEST_BLOCK = 50_000


class _Block:
    """A range of rows given to another thread, and what became of it."""

    def __init__(self, kernel: Callable[..., None], arguments: tuple[Any, ...], start: int, stop: int) -> None:
        self._task = (kernel, arguments, start, stop)
        self._done = threading.Lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def run(self) -> None:
        kernel, arguments, start, stop = self._task
        try:
            kernel(*arguments, start, stop)
        except BaseException as error:  # It is raised again in the thread that waits for this block.
            self._error = error
        finally:
            self._done.release()

    def wait(self) -> None:
        self._done.acquire()
        if self._error is not None:
            raise self._error


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
        self._blocks: SimpleQueue[_Block] = SimpleQueue()
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
        num_rows = len(rowptr) - 1
        work = (int(rowptr[-1]) + num_rows) * width
        parts = max(1, min(threads, work // _SMALLEST_BLOCK, num_rows))
        if parts == 1:
            kernel(*arguments, 0, num_rows)
            return
        bounds = _balanced_bounds(rowptr, parts)
        queue = self._queue_with_workers(parts - 1)
        blocks = [_Block(kernel, arguments, bounds[p], bounds[p + 1]) for p in range(1, parts)]
        for block in blocks:
            queue.put(block)
        kernel(*arguments, bounds[0], bounds[1])
        for block in blocks:
            block.wait()

    def _queue_with_workers(self, wanted: int) -> "SimpleQueue[_Block]":
        if self._workers < wanted:
            with self._lock:
                while self._workers < wanted:
                    threading.Thread(target=_work, args=(self._blocks,), name="cagat-rows", daemon=True).start()
                    self._workers += 1
        return self._blocks


def _work(blocks: "SimpleQueue[_Block]") -> None:
    while True:
        blocks.get().run()


def _balanced_bounds(rowptr: NDArray[Any], parts: int) -> list[int]:
    targets = np.arange(1, parts) * (int(rowptr[-1]) / parts)
    return [0, *np.searchsorted(rowptr, targets).tolist(), len(rowptr) - 1]
