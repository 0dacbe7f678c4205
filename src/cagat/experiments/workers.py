"""Processes that work through the jobs of an experiment, or do the fits of a search."""

import multiprocessing
import os
import signal
import statistics
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import TypeVar

import torch

from cagat.errors import CagatError
from cagat.experiments.jobs import Job, JobStore
from cagat.training.compute import keep_freed_memory

_POLL_SECONDS = 0.5
_T = TypeVar("_T")


def work_through(
    store: JobStore,
    jobs: list[Job],
    processes: int,
    data_dir: str | None,
    on_progress: Callable[[int, float | None], None],
    deterministic: bool = False,
) -> None:
    """Do all jobs, in several processes.

    Args:
        store: Where the records are.
        jobs: The jobs, in the order in which they are begun.
        processes: How many processes work at once.
        data_dir: Where published graphs are looked for.
        on_progress: Called now and then with the number of jobs done and an estimate of the seconds left.
        deterministic: Whether torch shall refuse operations whose bits are not fixed.

    Raises:
        CagatError: A process was killed, or a job cannot be done; what was done is kept.
    """
    missing = [job for job in jobs if store.records.get(job.asked) is None]
    if not missing:
        on_progress(len(jobs), 0.0)
        return
    pending = jobs
    with worker_pool(processes, deterministic) as pool:
        place = store.directory, store.records.path.stem
        futures = {pool.submit(_work, *place, job, data_dir) for job in missing}
        while futures:
            done, futures = wait(futures, _POLL_SECONDS, FIRST_COMPLETED)
            store.records.refresh()
            pending = [job for job in pending if store.found(job) is None]
            on_progress(len(jobs) - len(pending), _seconds_left(store, pending, processes))
            for future in done:
                result_of(future)


def _work(directory: Path, experiment: str, job: Job, data_dir: str | None) -> None:
    _store(directory, experiment).work([job], data_dir)


_store = cache(JobStore)


def _seconds_left(store: JobStore, pending: list[Job], processes: int) -> float | None:
    """From what the same method took on the same graph, or else from what all took."""
    taken: dict[tuple[str, str], list[float]] = {}
    for record in store.records:
        asked = record["asked"]
        if "method" in asked:
            taken.setdefault((asked["method"], asked["dataset"]), []).append(record["found"]["seconds"])
    if not taken:
        return None
    means = {key: statistics.fmean(values) for key, values in taken.items()}
    overall = statistics.fmean(seconds for values in taken.values() for seconds in values)
    return sum(means.get((job.method, job.task.dataset), overall) for job in pending) / processes


def worker_context() -> BaseContext:
    """How processes are started: not forked from this one, since torch's threads do not survive a fork.

    On Linux, from one without threads that has imported what all of them need, which takes seconds. Windows has no
    forks, and on macOS a fork may crash in what the system's libraries did before.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextmanager
def worker_pool(processes: int, deterministic: bool = False) -> Iterator[ProcessPoolExecutor]:
    """Processes that are killed at the end: after an interrupt nobody wants to wait for what is under way."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, worker_context(), _init_worker, (deterministic,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.kill()


def result_of(future: "Future[_T]") -> _T:
    """What a worker found; an error of its own is raised here, too."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise CagatError(
            "A worker was killed, perhaps because memory ran out. Finished runs are saved: run the same command again, "
            "perhaps with fewer --jobs."
        ) from error


def _init_worker(deterministic: bool) -> None:
    """Keep freed memory, leave Ctrl-C, which goes to all of a terminal's processes, to the parent, and end with it."""
    keep_freed_memory()
    # A fit itself runs on one thread, so this is all that is left to ask for.
    torch.use_deterministic_algorithms(deterministic)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="cagat-parent-watch", daemon=True).start()
