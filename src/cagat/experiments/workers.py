"""Processes that work through the jobs of an experiment."""

import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

from cagat.errors import CagatError
from cagat.experiments.job import Job
from cagat.experiments.job_store import JobStore, is_job
from cagat.experiments.worker_process import settle_as_worker, told_errors

_SECONDS_BETWEEN_LOOKS = 0.5


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
        CagatError: A process died, or could not go on and has said why; what was done is kept.
    """
    if all(store.records.get(job.asked()) is not None for job in jobs):
        on_progress(len(jobs), 0.0)
        return
    # Spawned, not forked: torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    name = store.records.path.stem
    workers = [
        context.Process(target=_work, args=(store.directory, name, jobs, data_dir, deterministic), daemon=True)
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    pending = jobs
    try:
        while any(worker.is_alive() for worker in workers):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            store.records.refresh()
            # What is done stays done: to look for all jobs again took an eighth of a core that the work could have had.
            pending = _pending(store, pending)
            on_progress(len(jobs) - len(pending), _seconds_left(store, pending, processes))
    finally:
        for worker in workers:
            worker.kill()
    store.records.refresh()
    codes = {worker.exitcode or 0 for worker in workers} - {0}
    if codes:
        raise CagatError(_reason(min(codes), store.records.path))


def _reason(code: int, path: Path) -> str:
    """Why the work is not done: a worker that was killed is worth another try, one that says why is not."""
    if code < 0:
        return (
            f"A worker was killed (signal {-code}), perhaps for want of memory. What was done is kept in {path}: give "
            "the same command again to go on, perhaps with fewer --jobs."
        )
    return (
        f"A worker could not go on (exit code {code}); its message is above. What was done is kept in {path}: mend "
        "what the message names, and the same command goes on from there."
    )


def _work(directory: Path, experiment: str, jobs: list[Job], data_dir: str | None, deterministic: bool) -> None:
    settle_as_worker()
    # A job itself runs on one thread, so that this is all that is left to ask for.
    torch.use_deterministic_algorithms(deterministic)
    with told_errors():
        JobStore(directory, experiment).work(jobs, data_dir)


def _pending(store: JobStore, jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if store.found(job) is None]


def _seconds_left(store: JobStore, pending: list[Job], processes: int) -> float | None:
    """From what the same method took on the same graph, or else from what all took."""
    taken: dict[tuple[str, str], list[float]] = {}
    for record in store.records:
        if not is_job(record["asked"]):
            continue
        place = (record["asked"]["method"], record["asked"]["dataset"])
        taken.setdefault(place, []).append(record["found"]["seconds"])
    if not taken:
        return None
    overall = statistics.fmean(seconds for values in taken.values() for seconds in values)
    means = {place: statistics.fmean(values) for place, values in taken.items()}
    return sum(means.get((job.method, job.cell.dataset), overall) for job in pending) / processes
