"""`cagat data` as a user meets it."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from cagat.cli import main
from cagat.data import load, summarize

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-graph"


@pytest.fixture
def cagat(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty directory, with an empty data directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAGAT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")

    logger = logging.getLogger("cagat")
    before = logger.handlers, logger.level, logger.propagate

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["cagat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == code, said.err
        return said

    yield run
    logger.handlers, logger.level, logger.propagate = before


def test_list_names_all_graphs(cagat, tmp_path):
    said = cagat("data", "list").out
    for name in (
        "cora",
        "citeseer",
        "cora_ml",
        "pubmed",
        "digits",
        "karate",
        "synthetic:nodes=",
        str(tmp_path / "data"),
    ):
        assert name in said
    assert not (tmp_path / "data").exists()
    for name in ("cora", "digits", "karate"):
        (row,) = (line.split() for line in said.splitlines() if line.startswith(f"{name} "))
        summary = summarize(load(name, sparse=True))
        assert row[1:5] == [str(summary[key]) for key in ("nodes", "edges", "features", "classes")]


def test_help_and_list_do_not_wait_for_torch():
    program = "import sys; from cagat.cli import app; app(sys.argv[1:], standalone_mode=False); assert not TORCH"
    program = program.replace("TORCH", "{'torch', 'torch_geometric'} & set(sys.modules)")
    for arguments in (["--help"], ["data", "--help"], ["data", "list"]):
        subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["cora", "citeseer", "cora_ml", "pubmed"])
def test_info_is_one_object(cagat, real_graphs, name):
    done = cagat("data", "info", name, "--json", "--data-dir", real_graphs)
    summary = json.loads(done.out)
    assert list(summary) == ["name", "nodes", "edges", "features", "classes", "class_sizes", "sha256", "source"]
    assert summary["name"] == name
    assert sum(summary["class_sizes"]) == summary["nodes"]
    assert f"{name}: found in the local directory {real_graphs}" in done.err


def test_info_on_the_example_in_words(cagat):
    said = cagat("data", "info", EXAMPLE).out
    assert "class sizes  italian 60, japanese 60, mexican 60" in said
    assert "nodes        240" in said


def test_convert_and_look(cagat, tmp_path):
    tables = [f"--{table}={EXAMPLE / table}.csv" for table in ("edges", "features", "labels")]
    assert (
        "240 nodes, 918 undirected edges, 40 features, 3 classes, 180 labelled"
        in cagat("data", "convert", *tables, "o.npz").out
    )
    summary = json.loads(cagat("data", "info", "o.npz", "--json").out)
    assert (summary["name"], summary["nodes"], summary["edges"]) == ("o", 240, 918)
    assert "918 directed edges" in cagat("data", "convert", *tables, "--directed", "d.safetensors").out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.safetensors", "o.npz"]


def test_oddities_go_to_standard_error(cagat, tmp_path):
    (tmp_path / "edges.csv").write_text("1,1\n1,2\n1,2\n")
    done = cagat("data", "info", tmp_path, "--json")
    assert json.loads(done.out)["edges"] == 1
    assert "1 self-loop dropped (the layer adds one to every node); 1 duplicate edge merged." in done.err


def test_fetch_says_where_it_is(cagat):
    done = cagat("data", "fetch", "cora")
    assert done.out.startswith("cora: ")
    assert "the one in the package" in done.err


def test_one_failure_does_not_keep_the_others_from_being_fetched(cagat):
    done = cagat("data", "fetch", "karate", "cora", code=1)
    assert done.out.startswith("cora: ")
    assert "nothing to fetch for 'karate'" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "coraa"], "Did you mean cora?"),
        (["fetch", "karate"], "There is nothing to fetch for 'karate'"),
        (["convert", "--edges", "none.csv", "o.npz"], "none.csv: there is no such file"),
        (["convert", "--edges", "none.csv", "o.txt"], "o.txt"),
    ],
)
def test_errors_are_one_message(cagat, arguments, message):
    assert message in cagat("data", *arguments, code=1).err


def test_the_example_is_what_its_script_makes(tmp_path):
    copy = tmp_path / "make.py"
    copy.write_text((EXAMPLE / "make.py").read_text())
    subprocess.run([sys.executable, copy], check=True)
    for table in ("edges.csv", "features.csv", "labels.csv"):
        assert (tmp_path / table).read_bytes() == (EXAMPLE / table).read_bytes()
