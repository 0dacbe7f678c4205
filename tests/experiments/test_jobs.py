import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from cagat import data
from cagat.errors import CagatError, DatasetError
from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.jobs import Job, JobStore, Task, cached_graph
from cagat.experiments.records import digest
from cagat.experiments.summary import table_cells
from cagat.experiments.tables import csv_table, readable_tables
from processes import CONTEXT

GRAPH = "synthetic:nodes=150,degree=4,classes=3,features=8,seed=0"
SHORT = (("epochs", 3), ("hidden", 2), ("heads", 1))
SMALL = Experiment(
    "small", "A small one", (Row("cagat", "paper", SHORT), Row("gat", "authors", SHORT)), (GRAPH,), (5,), splits=2
)
ALL = [("cagat", 0), ("cagat", 1), ("gat", 0), ("gat", 1)]


@pytest.fixture
def fake_runs(monkeypatch):
    """Jobs that do nothing, and the list of those that were done."""
    done = []

    def run(job, data_dir):
        done.append(job)
        losses = {"loss": [2.0, 1.0]} if job.history else {}
        return {"test_accuracy": 0.5, "seconds": 0, **losses}

    monkeypatch.setattr(Job, "run", run)
    return done


def test_what_is_done_is_not_done_again(tmp_path, fake_runs):
    JobStore(tmp_path, "small").work(SMALL.jobs(), None)
    JobStore(tmp_path, "small").work(SMALL.jobs(), None)
    # Another experiment takes over what this one has done.
    other = JobStore(tmp_path, "other")
    other.work(SMALL.jobs(), None)
    assert len(fake_runs) == len(other.records) == 4
    asked = [json.loads(line)["asked"] for line in (tmp_path / "small.jsonl").read_text().splitlines()]
    assert asked[0].keys() == {
        "method", "preset", "changes", "dataset", "labels", "split_seed", "initial_seed", "config",
    }  # fmt: skip


def test_a_change_of_what_no_preset_has_is_another_run(tmp_path, fake_runs):
    task = Task(GRAPH, 5, 0)
    jobs = [Job("cagat", "paper", task, changes) for changes in ((), (("val_labels", 0),), (("val_labels", 1),))]
    for number, job in enumerate(jobs):
        JobStore(tmp_path, f"experiment{number}").work([job], None)
    assert fake_runs == jobs


def own_graph(path, seed=0):
    data.save(data.load(f"synthetic:nodes=60,degree=4,classes=3,features=8,seed={seed}"), path)
    return str(path)


def test_a_graph_of_ones_own_is_known_by_name_and_content(tmp_path, fake_runs):
    (tmp_path / "elsewhere").mkdir()
    paths = [own_graph(tmp_path / "mine.npz"), own_graph(tmp_path / "elsewhere" / "mine.npz"), "mine"]
    first, moved, absent = (Job("cagat", "paper", Task(path, 5, 0)) for path in paths)
    assert first.asked == moved.asked
    assert first.asked["dataset"] == "mine"
    assert str(tmp_path) not in json.dumps(first.asked)
    store = JobStore(tmp_path / "results", "small")
    store.work([first, moved], None)
    assert fake_runs == [first]
    # Tables can be made without the file, but nothing can be run.
    assert store.found(absent) == store.found(first)
    assert (first.can_run, absent.can_run) == (True, False)
    other = Job("cagat", "paper", Task(own_graph(tmp_path / "elsewhere" / "mine.npz", seed=1), 5, 0))
    cached_graph.cache_clear()
    assert store.found(other) is None


def test_labels_of_a_small_graph_are_enough_if_few_validate(tmp_path):
    path = own_graph(tmp_path / "mine.npz")
    Job("cagat", "paper", Task(path, 3, 0), (("val_labels", 0),)).require_drawable_split(None)
    with pytest.raises(DatasetError, match=r"--labels 5: Class .* too few for"):
        Job(
            "cagat", "paper", Task("synthetic:nodes=60,degree=4,classes=3,features=8,seed=0", 5, 0)
        ).require_drawable_split(None)


def test_a_row_may_train_on_fewer_labels_than_the_table_is_about(tmp_path):
    rows = (Row("cagat", "paper", SHORT), Row("cagat", "paper", (*SHORT, ("val_labels", 1)), "held out", 2, False))
    experiment = Experiment("small", "A small one", rows, (own_graph(tmp_path / "mine.npz"),), (3,), splits=1)
    experiment = replace(experiment, calibration=True)
    store = JobStore(tmp_path, "small")
    store.work(experiment.jobs(), None)
    assert [job.task.labels for job in experiment.jobs()] == [3, 2]
    all_train, held_out = table_cells(experiment, store)
    assert held_out.place == all_train.place == ("mine", 3)
    found = [store.found(job) for job in experiment.jobs()]
    assert all_train.calibration_errors == {0: 100 * found[0]["calibration_error"]}
    assert held_out.calibration_errors == {0: 100 * found[1]["uncalibrated_error"]}
    (table,) = readable_tables(experiment, [all_train, held_out])
    assert [line[1] for line in table.rows] == [rows[0].name, "calibration error", "held out", "calibration error"]
    line = csv_table(experiment, [held_out]).splitlines()[1]
    assert line.startswith("cagat,paper,held out,")
    assert f"{held_out.calibration_error:.4f}" in line


def _work_for(directory, experiment, done):
    def run(job, data_dir):
        done.append((job.method, job.task.seed))
        time.sleep(0.05)
        return {"test_accuracy": 0.5, "seconds": 0.1}

    Job.run = run
    JobStore(directory, experiment).work(SMALL.jobs(), None)


def test_four_workers_of_two_experiments_do_every_job_once(tmp_path):
    """As on several machines: they have nothing in common but the directory."""
    with CONTEXT.Manager() as manager:
        done = manager.list()
        workers = [CONTEXT.Process(target=_work_for, args=(tmp_path, name, done)) for name in ("a", "b", "a", "b")]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 4
        assert sorted(done) == ALL


def test_a_job_is_left_alone_until_its_worker_dies(tmp_path, fake_runs):
    first, *others = SMALL.jobs()
    lock = tmp_path / ".claims" / f"{digest(first.asked)}.lock"
    lock.parent.mkdir()
    code = "import filelock, sys, time\nlock = filelock.FileLock(sys.argv[1])\nlock.acquire()\nprint()\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-uc", code, lock], stdout=subprocess.PIPE) as worker:
        worker.stdout.readline()
        JobStore(tmp_path, "small").work(SMALL.jobs(), None)
        assert fake_runs == others
        worker.kill()
    JobStore(tmp_path, "small").work(SMALL.jobs(), None)
    assert fake_runs == [*others, first]


def test_what_was_asked_for_in_other_words_is_not_done_again(tmp_path, fake_runs):
    task = Task(GRAPH, 5, 0)
    curve = Job("cagat", "paper", task, history=True)
    same, other = Job("cagat", "paper", task, (("xi", 1e-3),)), Job("cagat", "paper", task, (("xi", 0.0),))
    JobStore(tmp_path, "first").work([curve], None)
    store = JobStore(tmp_path, "second")
    store.work([same, other], None)
    assert fake_runs == [curve, other]
    assert store.found(same) == {"test_accuracy": 0.5, "seconds": 0}
    assert store.found(curve)["loss"] == [2.0, 1.0]
    assert store.found(replace(other, history=True)) is None


def test_a_run_and_one_that_diverges(tmp_path):
    wild = (("lr", 1000.0), ("weight_decay", 1000.0), ("feature_norm", "none"), ("epochs", 400))
    rows = (Row("cagat", "paper", wild), Row("cagat", "paper", SHORT))
    experiment = replace(SMALL, rows=rows, splits=1, history=True)
    store = JobStore(tmp_path, "small")
    store.work(experiment.jobs(), None)
    wild, tame = table_cells(experiment, store)
    assert (wild.failed, wild.accuracies) == (1, {})
    found = store.found(experiment.jobs()[1])
    assert tame.accuracies == {0: 100 * found["test_accuracy"]}
    assert len(found["loss"]) == found["epochs"] == 3
    assert found.keys() >= {"val_accuracy", "val_loss", "best_epoch", "seconds", "cpu_seconds", "versions"}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"method": [1]}, {}),
        ({}, {"test_accuracy": "high"}),
        ({}, {"test_accuracy": 80.0}),
        ({}, {"seconds": 10**400}),
        ({}, {"seconds": None}),
    ],
)
def test_a_damaged_record_is_named(tmp_path, asked, found):
    (job, *_) = SMALL.jobs()
    JobStore(tmp_path, "other").records.add(job.asked | asked, {"test_accuracy": 0.5, "seconds": 1} | found)
    with pytest.raises(CagatError, match=r"other\.jsonl: a record is damaged.*Remove its line"):
        JobStore(tmp_path, "small").found(job)


def test_the_fits_of_a_search_may_be_in_the_same_directory(tmp_path):
    JobStore(tmp_path, "fits").records.add({"model": "mlp", "dataset": GRAPH, "labels": 5}, {"val_accuracy": 0.5})
    assert JobStore(tmp_path, "small").found(SMALL.jobs()[0]) is None


def test_all_of_the_objective_tells_jobs_apart(monkeypatch):
    def key(*changes):
        return Job("cagat", "best", Task("cora", 20, 0), changes).asked["config"]

    assert len({key(), key(("objective", "supervised")), key(("ramp", 7)), key(("alignment", 0.25))}) == 4
    assert key(("samples", 2)) == key()  # Another word for the same run.
    before = key()
    monkeypatch.setattr("cagat.experiments.jobs.LARGEST_ALIGNMENT", 0.5)
    assert key() != before
