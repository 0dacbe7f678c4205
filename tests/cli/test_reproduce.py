import sys

import pytest

from cagat import data
from cagat.cli import main
from cagat.cli.reproduce import repeated_options
from cagat.experiments.experiment import Row
from cagat.experiments.jobs import Job, JobStore, Task


def test_lists_after_an_option():
    given = "table1 --datasets cora --methods cagat gat --splits 2 --labels 10 20 --out out"
    wanted = "table1 --datasets cora --methods cagat --methods gat --splits 2 --labels 10 --labels 20 --out out"
    assert repeated_options(given.split(" ")) == wanted.split(" ")
    # An option without a value, and a number below zero, are for the parser to refuse.
    for line in (["table1", "--methods"], ["--methods", "--splits", "1"], ["--labels", "-1"]):
        assert repeated_options(line) == line


def test_graphs_that_are_not_there_are_named_and_paths_kept_out_of_the_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Job, "run", lambda job, data_dir: {"test_accuracy": 0.5, "seconds": 1})
    # Where a worker is a process, it does not know what was changed here.
    monkeypatch.setattr("cagat.experiments.workers.work_through", lambda store, jobs, *_: store.work(jobs, None))
    graph, out = tmp_path / "twitch.npz", tmp_path / "out"
    data.save(data.load("synthetic:nodes=60,degree=4,classes=3,features=8,seed=0"), graph)

    def reproduce(*datasets):
        command = ["cagat", "reproduce", "own-labels", "--splits", "1", "--out", str(out), "--datasets", *datasets]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    code, said = reproduce("karate", str(graph), "lastfm")
    assert code == 0
    assert "lastfm is not part of cagat and is left out. To include it, add its path" in said
    assert "twitch is no part" not in said
    for path in out.glob("own_labels.*"):
        assert str(graph).encode() not in path.read_bytes(), path
    assert "twitch" in (out / "own_labels.csv").read_text()
    before = (out / "own_labels.csv").read_text()
    reproduce("karate", "twitch")
    assert (out / "own_labels.csv").read_text() == before, "what is recorded stays in the table"
    code, said = reproduce("coar")
    assert code != 0
    assert "There is no data set and no file called 'coar'" in said


def test_the_command_does_nothing_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cagat.experiments.workers.worker_pool", lambda *_: pytest.fail("a job was begun"))
    store = JobStore(tmp_path, "table1_seen")
    rows = (Row("gat", "authors"), Row("cagat", "paper"))
    for row in (*rows, Row("cagat", "tuned")):
        for seed in range(2):
            job = Job(row.method, row.preset, Task("cora", 20, seed))
            store.records.add(job.asked, {"test_accuracy": 0.8, "seconds": 1})
    monkeypatch.setattr("cagat.experiments.experiment.every_preset", lambda *methods: rows)
    command = ["cagat", "reproduce", "table1-seen", "--methods", "gat", "cagat", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, "--datasets", "cora", "--labels", "20", "--splits", "2"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "table1_seen.csv" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["cagat", "reproduce", "status", "--out", str(tmp_path), "--methods", "gat"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "table1_seen      2 of 80" in said
    assert "table2           0 of 0" in said, "a table without the method has no such runs"
    monkeypatch.setattr(sys, "argv", ["cagat", "reproduce", "all", "--methods", "gta"])
    with pytest.raises(SystemExit):
        main()
    assert "all has no method 'gta'. Did you mean gat?" in capsys.readouterr().err
