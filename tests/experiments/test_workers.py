import errno
from dataclasses import replace
from pathlib import Path

import pytest

from cagat.errors import CagatError
from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.jobs import JobStore
from cagat.experiments.workers import _reason, _seconds_left, printed_errors, work_through

GRAPH = "synthetic:nodes=150,degree=4,classes=3,features=8,seed=0"
SMALL = Experiment("small", "A small one", (Row("labelprop", "ref"),), (GRAPH,), (5,), splits=2)


def test_jobs_are_done_and_an_error_is_one_message(tmp_path, capfd):
    """In one pass, since a worker takes seconds to start: the second graph does not have that many labels."""
    store, progress = JobStore(tmp_path, "small"), []
    jobs = [*SMALL.jobs(), *replace(SMALL, labels=(500,)).jobs()]
    with pytest.raises(CagatError, match=r"A worker stopped \(exit code 1\).*fix what the message names"):
        work_through(store, jobs, 1, None, lambda done, seconds: progress.append((done, seconds)))
    assert [store.found(job) is not None for job in jobs] == [True, True, False, False]
    assert progress[-1][0] == 2
    said = capfd.readouterr().err
    assert "Error: Class '0' has 50 labelled nodes" in said
    assert "Traceback" not in said
    # What is done needs no worker.
    work_through(store, SMALL.jobs(), 1, None, lambda done, seconds: progress.append((done, seconds)))
    assert progress[-1] == (2, 0.0)


def test_the_time_left(tmp_path):
    store, jobs = JobStore(tmp_path, "small"), SMALL.jobs()
    assert _seconds_left(store, jobs, 1) is None
    store.records.add({"model": "mlp"}, {"val_accuracy": 0.5})
    assert _seconds_left(store, jobs, 1) is None, "fits of a search do not count"
    store.records.add(jobs[0].asked, {"test_accuracy": 0.5, "seconds": 6})
    assert _seconds_left(store, jobs[1:], 2) == 3


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (CagatError("This is wrong."), "Error: This is wrong.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "fits"), "Error: fits: No space left on device. Check"),
        (MemoryError(), "Error: There is not enough memory."),
        (RuntimeError("[enforce fail] can't allocate memory: 9"), "Error: There is not enough memory."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_worker_says(raised, message, capsys):
    with pytest.raises(SystemExit) as ended, printed_errors():
        raise raised
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(message)


def test_a_defect_of_a_worker_is_not_hidden():
    with pytest.raises(RuntimeError, match="a defect"), printed_errors():
        raise RuntimeError("a defect")


def test_a_worker_that_was_killed_is_worth_another_try():
    assert "signal 9" in _reason(-9, Path("small.jsonl"))
    assert "give the same command again" in _reason(-9, Path("small.jsonl"))
