"""Jobs that several processes, on one machine or on several that share a directory, do once each."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import filelock

from cagat.errors import CagatError
from cagat.experiments.job import HISTORY, Job, same_work
from cagat.experiments.records import Records, digest
from cagat.files import disk_errors

_LARGEST = 1e39


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
        self._done: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._seen: Counter[Path] = Counter()
        self._refresh_others()

    def found(self, job: Job) -> dict[str, Any] | None:
        """What came of a job, if it, or one that does the same, was done, in this experiment or in another.

        Raises:
            CagatError: A record holds what no job asks or finds.
        """
        for records in (self.records, *self._others.values()):
            for record in islice(records, self._seen[records.path], None):
                # A search keeps its fits in such a file, too, perhaps in the same directory.
                if not is_job(record["asked"]):
                    continue
                _require_sound(record, records.path)
                for does in same_work(record["asked"]):
                    self._done.setdefault(does, record["found"])
            self._seen[records.path] = len(records)
        found = self._done.get(same_work(job.asked())[0])
        if found is None or job.history:
            return found
        return {key: value for key, value in found.items() if key not in HISTORY}

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
        lock = filelock.FileLock(path, timeout=0)
        try:
            with disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire()
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()


def is_job(asked: Mapping[str, Any]) -> bool:
    """Whether what was asked is a job of an experiment."""
    return "method" in asked


def _require_sound(record: dict[str, Any], path: Path) -> None:
    """Refuse a record, which somebody else may have written, with which nothing can be compared, counted or drawn."""
    asked, found = record["asked"], record["found"]
    told = all(isinstance(part, (str, int, type(None))) for does in same_work(asked) for part in does)
    if not told:
        wrong = "what it asks for is neither text nor whole numbers"
    elif "failed" not in found and not _is_share(found.get("test_accuracy")):
        wrong = f"its test_accuracy is {found.get('test_accuracy')!r:.40}, not a number from 0 to 1"
    elif not _is_number(found.get("seconds")):
        wrong = f"its seconds are {found.get('seconds')!r:.40}, not a number"
    elif not all(_are_losses(found[key]) for key in HISTORY if key in found):
        wrong = f"its {' or '.join(sorted(HISTORY))} is not a list of numbers"
    else:
        return
    raise CagatError(
        f"{path}: a record is damaged: {wrong}. Remove its line (asked: {asked!r:.300}); it is done again."
    )


def _is_number(value: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return True
    # Larger ones are no result of float32, and their sums may be no numbers any more.
    return isinstance(value, (int, float)) and abs(value) < _LARGEST


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _are_losses(values: Any) -> bool:
    return isinstance(values, list) and all(map(_is_number, values))
