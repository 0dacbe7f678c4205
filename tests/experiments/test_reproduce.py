import csv
import errno
import json
import multiprocessing
import statistics
import sys
import time
import xml.etree.ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cagat.cli import main
from cagat.cli.reproduce import repeated_options
from cagat.errors import CagatError
from cagat.experiments.cell import Cell
from cagat.experiments.experiment import Experiment, Row, figure1, figure2
from cagat.experiments.figures import draw
from cagat.experiments.job import Job
from cagat.experiments.job_store import JobStore
from cagat.experiments.summary import Entry, entries
from cagat.experiments.tables import write_tables
from cagat.experiments.worker_process import told_errors
from cagat.experiments.workers import _reason, _seconds_left, work_through

GRAPH = "synthetic:nodes=150,degree=4,classes=3,features=8,seed=0"
SHORT = (("epochs", 3), ("hidden", 2), ("heads", 1))
SMALL = Experiment(
    "small", "A small one", (Row("cagat", "paper", SHORT), Row("gat", "authors", SHORT)), (GRAPH,), (5,), splits=2
)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> JobStore:
    store = JobStore(tmp_path_factory.mktemp("results"), "small")
    progress = []
    work_through(store, SMALL.jobs(), 2, None, lambda done, seconds: progress.append((done, seconds)))
    assert progress[-1][0] == 4
    return store


def test_every_job_is_done_once(store):
    lines = [json.loads(line) for line in store.records.path.read_text().splitlines()]
    asked = [line["asked"] for line in lines]
    assert len(asked) == len({json.dumps(one) for one in asked}) == 4
    assert asked[0].keys() == {
        "method", "preset", "changes", "dataset", "labels", "split_seed", "initial_seed", "config",
    }  # fmt: skip
    assert lines[0]["found"].keys() >= {"test_accuracy", "val_accuracy", "epochs", "seconds", "versions"}


def test_what_is_done_is_not_done_again(store, monkeypatch):
    monkeypatch.setattr(Job, "run", lambda job, data_dir: pytest.fail("a job was run again"))
    JobStore(store.directory, "small").work(SMALL.jobs(), None)
    # Another experiment takes over what this one has done.
    other = JobStore(store.directory, "other")
    other.work(SMALL.jobs(), None)
    assert len(other.records) == 4


def _work_slowly(directory, done):
    def run(job, data_dir):
        done.append((job.method, job.cell.seed))
        return {"test_accuracy": 0.5, "seconds": 0.1}

    Job.run = run
    JobStore(directory, "race").work(SMALL.jobs(), None)


def test_two_workers_never_do_the_same_job(tmp_path):
    with multiprocessing.Manager() as manager:
        done = manager.list()
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=_work_slowly, args=(tmp_path, done)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sorted(done) == [("cagat", 0), ("cagat", 1), ("gat", 0), ("gat", 1)]


def _work_for(directory, experiment, done):
    def run(job, data_dir):
        done.append((job.method, job.cell.seed))
        time.sleep(0.05)
        return {"test_accuracy": 0.5, "seconds": 0.1}

    Job.run = run
    JobStore(directory, experiment).work(SMALL.jobs(), None)


def test_four_workers_of_two_experiments_do_every_job_once(tmp_path):
    """As on several machines: they have nothing in common but the directory."""
    with multiprocessing.Manager() as manager:
        done = manager.list()
        # Forked from a process without threads, so that all begin at about the same time.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["cagat.experiments.job_store"])
        workers = [context.Process(target=_work_for, args=(tmp_path, name, done)) for name in ("a", "b", "a", "b")]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0] * 4
        assert sorted(done) == [("cagat", 0), ("cagat", 1), ("gat", 0), ("gat", 1)]


def test_a_job_of_a_worker_that_was_killed_is_done_by_the_next(tmp_path):
    context = multiprocessing.get_context("spawn")
    claimed = context.Event()
    worker = context.Process(target=_claim_and_wait, args=(tmp_path, claimed))
    worker.start()
    assert claimed.wait(60)
    store, (job, *_) = JobStore(tmp_path, "race"), SMALL.jobs()
    with store._claim(job) as ours:
        assert not ours
    worker.kill()
    worker.join()
    with store._claim(job) as ours:
        assert ours


def _claim_and_wait(directory, claimed):
    with JobStore(directory, "race")._claim(SMALL.jobs()[0]) as ours:
        assert ours
        claimed.set()
        time.sleep(600)


def test_a_job_that_somebody_is_at_work_on_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(Job, "run", lambda job, data_dir: {"test_accuracy": 0.5, "seconds": 0})
    store = JobStore(tmp_path, "small")
    with store._claim(SMALL.jobs()[0]) as ours:
        assert ours
        JobStore(tmp_path, "small").work(SMALL.jobs(), None)
    store.records.refresh()
    assert [store.found(job) is None for job in SMALL.jobs()] == [True, False, False, False]


def test_what_was_asked_for_in_other_words_is_not_done_again(tmp_path, monkeypatch):
    done = []

    def run(job, data_dir):
        done.append(job)
        return {"test_accuracy": len(done) / 2, "seconds": 0, **({"loss": [2.0, 1.0]} if job.history else {})}

    monkeypatch.setattr(Job, "run", run)
    cell = Cell(GRAPH, 5, 0)
    curve = Job("cagat", "paper", cell, history=True)
    same, other = Job("cagat", "paper", cell, (("xi", 1e-3),)), Job("cagat", "paper", cell, (("xi", 0.0),))
    JobStore(tmp_path, "first").work([curve], None)
    store = JobStore(tmp_path, "second")
    store.work([same, other], None)
    assert done == [curve, other]
    assert store.found(same) == {"test_accuracy": 0.5, "seconds": 0}
    assert store.found(curve)["loss"] == [2.0, 1.0]
    assert store.found(replace(other, history=True)) is None


def test_a_loss_that_is_no_number_is_a_result(tmp_path):
    wild = (("lr", 1000.0), ("weight_decay", 1000.0), ("feature_norm", "none"), ("epochs", 400))
    experiment = replace(SMALL, rows=(Row("cagat", "paper", wild),), splits=1)
    store = JobStore(tmp_path, "small")
    store.work(experiment.jobs(), None)
    (entry,) = entries(experiment, store)
    assert (entry.failed, entry.accuracies) == (1, {})


@pytest.mark.parametrize(
    ("asked", "found", "wrong"),
    [
        ({"method": [1]}, {}, "what it asks for is neither text nor whole numbers"),
        ({"labels": {"a": 1}}, {}, "what it asks for is neither text nor whole numbers"),
        ({}, {"test_accuracy": "high"}, "its test_accuracy is 'high', not a number from 0 to 1"),
        ({}, {"test_accuracy": 1e308}, "its test_accuracy is 1e+308"),
        ({}, {"test_accuracy": None}, "its test_accuracy is None"),
        ({}, {"seconds": 10**400}, "its seconds are 1000"),
        ({"history": True}, {"loss": [1.0, -1e308]}, "its loss or val_loss_by_epoch is not a list of numbers"),
        ({"history": True}, {"loss": 3}, "its loss or val_loss_by_epoch is not a list of numbers"),
    ],
)
def test_a_record_that_no_job_wrote_is_told(tmp_path, asked, found, wrong):
    (job, *_) = SMALL.jobs()
    JobStore(tmp_path, "other").records.add(job.asked() | asked, {"test_accuracy": 0.5, "seconds": 1} | found)
    with pytest.raises(CagatError, match=r"other\.jsonl: a record is damaged") as error:
        JobStore(tmp_path, "small").found(job)
    assert wrong in str(error.value)
    assert "Remove its line" in str(error.value)


def test_the_fits_of_a_search_may_be_in_the_same_directory(tmp_path):
    JobStore(tmp_path, "fits").records.add({"model": "mlp", "dataset": GRAPH, "labels": 5}, {"val_accuracy": 0.5})
    assert JobStore(tmp_path, "small").found(SMALL.jobs()[0]) is None
    assert _seconds_left(JobStore(tmp_path, "fits"), SMALL.jobs(), 1) is None


def test_a_worker_that_cannot_go_on_says_why_in_one_message(tmp_path, capfd):
    experiment = replace(SMALL, labels=(500,))
    with pytest.raises(CagatError, match=r"could not go on \(exit code 1\).*mend what the message names"):
        work_through(JobStore(tmp_path, "small"), experiment.jobs(), 1, None, lambda done, seconds: None)
    said = capfd.readouterr().err
    assert "Error: Class '0' has 50 labelled nodes" in said
    assert "Traceback" not in said


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
    with pytest.raises(SystemExit) as ended, told_errors():
        raise raised
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(message)


def test_a_defect_of_a_worker_is_not_hidden():
    with pytest.raises(RuntimeError, match="a defect"), told_errors():
        raise RuntimeError("a defect")


def test_a_worker_that_was_killed_is_worth_another_try():
    assert "signal 9" in _reason(-9, Path("small.jsonl"))
    assert "give the same command again" in _reason(-9, Path("small.jsonl"))


def test_numbers_of_the_table(store, tmp_path):
    found = entries(SMALL, store)
    pictures = draw(SMALL, found, store, tmp_path)
    write_tables(SMALL, found, tmp_path, "cagat reproduce small", pictures)
    rows = list(csv.DictReader((tmp_path / "small.csv").open()))
    assert [row["method"] for row in rows] == ["cagat", "gat"]
    values = [100 * store.found(job)["test_accuracy"] for job in SMALL.jobs() if job.method == "cagat"]
    assert rows[0]["mean"] == f"{statistics.fmean(values):.4f}"
    assert rows[0]["std"] == f"{statistics.stdev(values):.4f}"
    assert (rows[0]["n"], rows[0]["labels_per_class"]) == ("2", "5")
    text = (tmp_path / "small.md").read_text()
    assert "cagat reproduce small" in text
    assert f"{statistics.fmean(values):.1f} ±" in text
    assert "![A small one](small.svg)" in text
    page = (tmp_path / "small.html").read_text()
    HTMLParser().feed(page)
    assert page.count("<svg") == 1


def test_paired_differences():
    row = Row("cagat", "paper")
    ours = Entry(row, "cora", 20, {0: 81.0, 1: 80.0, 2: 84.0}, 0)
    theirs = Entry(row, "cora", 20, {0: 80.0, 1: 78.0, 2: 81.0, 3: 50.0}, 0)
    difference = ours.minus(theirs)
    assert (difference.mean, difference.n) == (2.0, 3)
    # Student's t with two degrees of freedom, 4.3027, times 1 / sqrt(3).
    assert difference.high - difference.mean == pytest.approx(2.4841, abs=1e-3)
    assert ours.minus(Entry(row, "cora", 20, {0: 1.0}, 0)) is None


def test_table1_puts_the_papers_figures_and_gat_beside(tmp_path):
    rows = (Row("gat", "authors"), Row("cagat", "paper"), Row("appnp", "authors"))
    experiment = Experiment("table1", "T", rows, ("cora",), (20,))
    found = [Entry(row, "cora", 20, {0: 80.0 + n, 1: 82.0 + 2 * n}, 0) for n, row in enumerate(rows)]
    write_tables(experiment, found, tmp_path, "c")
    gat, cagat, _ = csv.DictReader((tmp_path / "table1.csv").open())
    assert float(cagat["minus_gat"]) == 1.5
    assert float(cagat["minus_appnp"]) == -1.5
    assert gat["minus_gat"] == ""
    assert "less APPNP, paired" in (tmp_path / "table1.md").read_text()
    assert float(gat["paper_mean"]) > 70
    assert "less GAT, paired" in (tmp_path / "table1.md").read_text()


def test_a_table_that_is_too_wide_becomes_one_for_each_graph(tmp_path):
    graphs, labels = ("cora", "cora:added=50", "citeseer"), (1, 2, 3)
    experiment = Experiment("wide", "W", (Row("gat", "authors"),), graphs, labels)
    found = [Entry(row, graph, count, {0: 50.0}, 0) for row in experiment.rows for graph in graphs for count in labels]
    write_tables(experiment, found, tmp_path, "c")
    heads = [line for line in (tmp_path / "wide.md").read_text().splitlines() if line.startswith("| method")]
    assert [head.count("label") for head in heads] == [6, 3]
    assert "| cora, 1 label | cora, 2 labels |" in heads[0]
    assert "| citeseer, 3 labels |" in heads[1]
    assert (tmp_path / "wide.html").read_text().count("<table>") == 2
    write_tables(experiment, found[:8], tmp_path, "c")
    assert (tmp_path / "wide.html").read_text().count("<table>") == 1


def test_figures(tmp_path):
    curves = replace(figure1(), datasets=(GRAPH,), labels=(5,), splits=2)
    curves = replace(curves, rows=tuple(replace(row, changes=SHORT) for row in curves.rows))
    coefficients = figure2()
    store = JobStore(tmp_path, "figure1")
    store.work(curves.jobs(), None)
    assert len(store.found(curves.jobs()[0])["loss"]) == 3
    found = [Entry(row, "cora", 20, {0: 80.0, 1: 81.0}, 0) for row in coefficients.rows]
    labels = Experiment("few_labels", "L", SMALL.rows, (GRAPH,), (1, 2))
    few = [Entry(row, GRAPH, count, {0: 50.0, 1: 60.0 + count}, 0) for row in SMALL.rows for count in (1, 2)]
    paths = [*draw(curves, entries(curves, store), store, tmp_path), *draw(coefficients, found, store, tmp_path)]
    paths += draw(labels, few, store, tmp_path)
    noisy = Experiment("noise", "N", SMALL.rows, (GRAPH, f"{GRAPH},seed=1"), (5,))
    found = [Entry(row, graph, 5, {0: 50.0, 1: 60.0}, 0) for row in SMALL.rows for graph in noisy.datasets]
    paths += draw(noisy, found, store, tmp_path)
    assert len(paths) == 8
    before = [path.read_bytes() for path in paths[-2:]]
    assert [path.read_bytes() for path in draw(noisy, found, store, tmp_path)] == before, (
        "the same figure, the same file"
    )
    for path in paths:
        if path.suffix == ".svg":
            xml.etree.ElementTree.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_lists_after_an_option():
    given = "table1 --datasets cora --methods cagat gat --splits 2 --labels 10 20 --out out"
    wanted = "table1 --datasets cora --methods cagat --methods gat --splits 2 --labels 10 --labels 20 --out out"
    assert repeated_options(given.split(" ")) == wanted.split(" ")
    # An option without a value, and a number below zero, are for the parser to refuse.
    for line in (["table1", "--methods"], ["--methods", "--splits", "1"], ["--labels", "-1"]):
        assert repeated_options(line) == line


def test_the_command(tmp_path, monkeypatch, capsys):
    command = ["cagat", "reproduce", "table1", "--methods", "gat", "cagat", "--out", str(tmp_path)]
    monkeypatch.setattr(Job, "run", lambda job, data_dir: pytest.fail("a job was run"))
    store = JobStore(tmp_path, "table1")
    # All runs are on record already, so that none is done.
    for method, preset in (("gat", "authors"), ("cagat", "paper")):
        for seed in range(2):
            store.records.add(Job(method, preset, Cell("cora", 20, seed)).asked(), {"test_accuracy": 0.8, "seconds": 1})
    presets = {"gat": {"authors"}, "cagat": {"paper"}}
    monkeypatch.setattr(
        "cagat.experiments.experiment.every_preset",
        lambda *methods: tuple(Row(method, preset) for method, names in presets.items() for preset in names),
    )
    monkeypatch.setattr(sys, "argv", [*command, "--datasets", "cora", "--labels", "20", "--splits", "2"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "table1.csv" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["cagat", "reproduce", "status", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "table1           4 of" in capsys.readouterr().out
