"""What the command line says where the disk, or a name, is not as it should be."""

import os
import stat
import sys
from pathlib import Path

import pytest

from cagat.cli import main

EDGES = Path(__file__).parents[2] / "examples" / "own-graph" / "edges.csv"
TRAIN = ("train", "--dataset", "karate", "--labels", "2", "--val-labels", "2", "--epochs", "1")


@pytest.fixture
def failing(tmp_path, monkeypatch, capsys):
    """Run a command line that must fail, in an empty directory, and return what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*line: str) -> str:
        monkeypatch.setattr(sys, "argv", ["cagat", *line])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 1
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize("out", ["file", "file/run"])
def test_a_file_where_a_directory_must_be(out, failing, tmp_path):
    (tmp_path / "file").touch()
    assert "cannot be written" in failing(*TRAIN, "--out", out)
    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize(
    "line",
    [
        (*TRAIN, "--out", "n" * 300),
        ("train", "--resume", "n" * 300),
        ("data", "convert", "--edges", str(EDGES), "n" * 300 + ".npz"),
        ("report", "n" * 300),
    ],
    ids=lambda line: line[0],
)
def test_a_name_that_is_too_long(line, failing, tmp_path):
    assert "too long" in failing(*line).replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_a_name_as_long_as_a_disk_takes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "n" * 251 + ".npz"
    monkeypatch.setattr(sys, "argv", ["cagat", "data", "convert", "--edges", str(EDGES), name])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert os.listdir(tmp_path) == [name]


@pytest.mark.posix
def test_who_may_read_a_file_is_for_the_umask_to_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cagat", "data", "convert", "--edges", str(EDGES), "graph.npz"])
    before = os.umask(0o027)
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "graph.npz").stat().st_mode) == 0o640


def test_an_unknown_graph_is_told_before_workers_start(failing, tmp_path):
    assert "'crora'" in failing("reproduce", "table1", "--datasets", "crora", "--methods", "mlp", "--out", "results")
    assert list(tmp_path.iterdir()) == []


SMALL = "synthetic:nodes=60,degree=4,classes=2,features=8,seed=0"


@pytest.mark.parametrize(
    "line",
    [
        ("reproduce", "table1", "--datasets", SMALL, "--methods", "labelprop", "--labels", "3", "500", "--splits", "1"),
        ("reproduce", "all", "--datasets", SMALL, "--labels", "500"),
    ],
    ids=lambda line: " ".join(line[:2]),
)
def test_a_split_that_cannot_be_drawn_is_told_before_anything_is_written(line, failing, tmp_path):
    message = failing(*line, "--out", "results").replace("\n", " ")
    assert f"{SMALL} with --labels 500: Class '0' has 30 labelled nodes" in message
    assert "Ask for fewer" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "option", "value"),
    [
        (("reproduce", "table1"), "--labels", "0"),
        (("reproduce", "table1"), "--labels", "-1"),
        (("reproduce", "table1"), "--jobs", "9" * 25),
        (("tune", "--out", "t"), "--labels", "0"),
        (("tune", "--out", "t"), "--jobs", "9" * 25),
        (("tune", "--out", "t"), "--seed", "9" * 25),
    ],
)
def test_numbers_out_of_range_are_wrong_usage(line, option, value, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cagat", *line, option, value])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert option in message
    assert "than or equal to" in message.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_tables_in_a_directory_whose_name_is_not_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = ["reproduce", "table1", "--datasets", SMALL, "--methods", "labelprop", "--labels", "3", "--splits", "1"]
    monkeypatch.setattr(sys, "argv", ["cagat", *line, "--out", os.fsdecode(b"\xff")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, capsys.readouterr().err
    assert r"--out \udcff" in Path(os.fsdecode(b"\xff"), "table1.md").read_text().replace("'", "")


@pytest.mark.posix
def test_records_that_are_a_device_are_told(failing, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "x.jsonl").symlink_to("/dev/zero")
    assert "x.jsonl: cannot be read (it is no regular file)" in failing("reproduce", "status", "--out", "results")


@pytest.mark.parametrize(("name", "content"), [("search.json", "{}"), ("trials.csv", "trial,state\n0,complete\n")])
def test_a_search_whose_files_are_damaged(failing, tmp_path, name, content):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / name).write_text(content)
    message = failing("tune", "--dataset", SMALL, "--labels", "2", "--out", "search").replace("\n", " ")
    assert name in message
    assert "Choose another --out" in message


def test_a_report_without_a_name(failing):
    assert "--out report" in failing("report", "run", "--out", "").replace("\n", " ")
