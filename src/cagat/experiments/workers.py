"""Processes that work through the jobs of an experiment."""

import multiprocessing
import os
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from cagat.errors import CagatError
from cagat.experiments.jobs import Job, JobStore
from cagat.training.compute import keep_freed_memory

_POLL_SECONDS = 0.5
_PARENT_POLL_SECONDS = 2.0


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
        CagatError: A process died, or stopped with a message of its own; what was done is kept.
    """
    if all(store.records.get(job.asked) is not None for job in jobs):
        on_progress(len(jobs), 0.0)
        return
    # Spawned, not forked: torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    arguments = (store.directory, store.records.path.stem, jobs, data_dir, deterministic)
    workers = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(processes)]
    for worker in workers:
        worker.start()
    pending = jobs
    try:
        while any(worker.is_alive() for worker in workers):
            time.sleep(_POLL_SECONDS)
            store.records.refresh()
            pending = [job for job in pending if store.found(job) is None]
            on_progress(len(jobs) - len(pending), _seconds_left(store, pending, processes))
    finally:
        for worker in workers:
            worker.kill()
    store.records.refresh()
    codes = {worker.exitcode or 0 for worker in workers} - {0}
    if codes:
        raise CagatError(_reason(min(codes), store.records.path))


def _reason(code: int, path: Path) -> str:
    """Why the work is not done: a worker that was killed is worth another try, one that printed an error is not."""
    if code < 0:
        return (
            f"A worker was killed (signal {-code}), perhaps because memory ran out. What was done is kept in {path}: "
            "give the same command again to go on, perhaps with fewer --jobs."
        )
    return (
        f"A worker stopped (exit code {code}); its message is above. What was done is kept in {path}: fix what the "
        "message names, and give the same command again to go on."
    )


def _work(directory: Path, experiment: str, jobs: list[Job], data_dir: str | None, deterministic: bool) -> None:
    init_worker()
    # A job itself runs on one thread, so this is all that is left to ask for.
    torch.use_deterministic_algorithms(deterministic)
    with printed_errors():
        JobStore(directory, experiment).work(jobs, data_dir)


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


def init_worker() -> None:
    """Keep freed memory, leave Ctrl-C, which goes to all of a terminal's processes, to the parent, and end with it."""
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="cagat-parent-watch", daemon=True).start()


@contextmanager
def printed_errors() -> Iterator[None]:
    """End a worker with one message, as the command line ends, where the input or the machine is at fault."""
    try:
        yield
    except CagatError as error:
        message = str(error)
    except OSError as error:
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)[:200]}: "
        message = f"{place}{error.strerror or error}. Check who may read and write there, and the space left."
    except (MemoryError, RuntimeError) as error:
        # torch reports that memory is short with a RuntimeError of several lines.
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        message = "There is not enough memory. Use fewer --jobs, or a machine with more."
    else:
        return
    print(f"Error: {message}", file=sys.stderr)
    sys.exit(1)
