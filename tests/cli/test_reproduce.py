import sys

import pytest

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


def test_the_command_does_nothing_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Job, "run", lambda job, data_dir: pytest.fail("a job was run"))
    store = JobStore(tmp_path, "table1")
    rows = (Row("gat", "authors"), Row("cagat", "paper"))
    for row in rows:
        for seed in range(2):
            job = Job(row.method, row.preset, Task("cora", 20, seed))
            store.records.add(job.asked, {"test_accuracy": 0.8, "seconds": 1})
    monkeypatch.setattr("cagat.experiments.experiment.every_preset", lambda *methods: rows)
    command = ["cagat", "reproduce", "table1", "--methods", "gat", "cagat", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*command, "--datasets", "cora", "--labels", "20", "--splits", "2"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "table1.csv" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["cagat", "reproduce", "status", "--out", str(tmp_path), "--methods", "gat"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().out
    assert "table1           2 of 80" in said
    assert "table2           0 of 0" in said, "a table without the method has no such runs"
    monkeypatch.setattr(sys, "argv", ["cagat", "reproduce", "all", "--methods", "gta"])
    with pytest.raises(SystemExit):
        main()
    assert "all has no method 'gta'. Did you mean gat?" in capsys.readouterr().err
