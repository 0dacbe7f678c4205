"""Jobs that several processes, on one machine or on several that share a directory, do once each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock

from cagat.experiments.job import Job
from cagat.experiments.records import Records, digest


class JobStore:
    """The records of an experiment, and who is at work on what.

    A job is claimed by a lock on a file, which the system takes back when its owner dies; so no claim goes stale. On
    several machines the directory must be on a file system whose locks hold for all of them, as those of NFS 4 do.

    Args:
        directory: The directory of the results, shared by all experiments: what one has done, another need not do.
        experiment: The name of the experiment, whose records are in `EXPERIMENT.jsonl`.
    """

    def __init__(self, directory: Path, experiment: str) -> None:
        self.directory = directory
        self.records = Records(directory / f"{experiment}.jsonl")
        self._others: dict[Path, Records] = {}
        self._refresh_others()

    def found(self, job: Job) -> dict[str, Any] | None:
        """What came of a job, if it was done, in this experiment or in another."""
        asked = job.asked()
        answers = (records.get(asked) for records in (self.records, *self._others.values()))
        return next((answer for answer in answers if answer is not None), None)

    def work(self, jobs: list[Job], data_dir: str | None) -> None:
        """Do the jobs that nobody has done and nobody is at work on; what another experiment did is taken over."""
        for job in jobs:
            asked = job.asked()
            self.records.refresh()
            if self.records.get(asked) is not None:
                continue
            with self._claim(job) as ours:
                if not ours:
                    continue
                # Somebody may have finished it between our look and our claim, for this experiment or for another.
                self.records.refresh()
                self._refresh_others()
                if self.records.get(asked) is None:
                    self.records.add(asked, self.found(job) or job.run(data_dir))

    def _refresh_others(self) -> None:
        """Take note of what other experiments have done meanwhile."""
        for path in sorted(self.directory.glob("*.jsonl")):
            if path in self._others:
                self._others[path].refresh()
            elif path != self.records.path:
                self._others[path] = Records(path)

    @contextmanager
    def _claim(self, job: Job) -> Iterator[bool]:
        path = self.directory / ".claims" / f"{digest(job.asked())}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path, timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
