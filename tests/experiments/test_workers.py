import os
import signal
from dataclasses import replace

import pytest

from cagat.errors import CagatError
from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.jobs import JobStore
from cagat.experiments.workers import _seconds_left, result_of, work_through, worker_pool

GRAPH = "synthetic:nodes=150,degree=4,classes=3,features=8,seed=0"
SMALL = Experiment("small", "A small one", (Row("labelprop", "ref"),), (GRAPH,), (5,), splits=2)


def test_jobs_are_done_until_one_cannot_be(tmp_path):
    """In one pass, since a worker takes seconds to start: the second graph does not have that many labels."""
    store, progress = JobStore(tmp_path, "small"), []
    jobs = [*SMALL.jobs(), *replace(SMALL, labels=(500,)).jobs()]
    with pytest.raises(CagatError, match="Class '0' has 50 labelled nodes"):
        work_through(store, jobs, 1, None, lambda done, seconds: progress.append((done, seconds)))
    assert [store.found(job) is not None for job in jobs] == [True, True, False, False]
    assert progress[-1][0] == 2
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


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.posix
def test_a_worker_that_was_killed_is_worth_another_try():
    with pytest.raises(CagatError, match=r"was killed.*run the same command again"), worker_pool(1) as pool:
        result_of(pool.submit(_die))
