import csv
import json
import sys

import pytest

from cagat.cli import main
from cagat.cli.suggest import NAMES
from cagat.suggestions import STRATEGIES

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"


@pytest.fixture
def cagat(monkeypatch, capsys, tmp_path):
    """Runs a command in a directory of its own: its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object):
        monkeypatch.setattr(sys, "argv", ["cagat", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return run


def test_a_file_of_suggestions(cagat, tmp_path):
    code, out, _ = cagat("suggest", GRAPH, "--budget", 12)
    assert code == 0
    assert "suggestions.csv: 12 nodes" in out
    assert "and 2 more" in out
    with (tmp_path / "suggestions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["rank", "node", "score", "reason"]
    assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, 13)]
    assert all("stands for" in row["reason"] for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["suggestions.csv"]


def test_json_and_no_file_unless_asked_for(cagat, tmp_path):
    code, out, _ = cagat("suggest", GRAPH, "--budget", 2, "--strategy", "pagerank", "--json")
    found = json.loads(out)
    assert (code, found["graph"], found["strategy"]) == (0, GRAPH, "pagerank")
    assert [set(one) for one in found["suggestions"]] == [{"rank", "node", "score", "reason"}] * 2
    assert not list(tmp_path.iterdir())
    assert cagat("suggest", GRAPH, "--budget", 2, "--json", "--out", "s.parquet")[0] == 0
    assert (tmp_path / "s.parquet").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", 91], "91 nodes were asked for, but only 90 of 90 have no label"),
        (["--budget", 1, "--strategy", "best"], "There is no strategy 'best'"),
        (["--budget", 1, "--out", "s.txt"], "must end in .csv or .parquet"),
        (["--budget", 1, "--run", "nowhere"], "nowhere"),
        (["--budget", 1, "--run", "nowhere", "--node", "id"], "--node: the run already says how its tables are read"),
    ],
)
def test_errors_are_one_message(cagat, tmp_path, options, message):
    code, _, err = cagat("suggest", GRAPH, *options)
    assert code == 1
    assert message in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_columns_of_any_name(cagat, tmp_path):
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "edges.csv").write_text("left,right\n" + "".join(f"{n},{n // 2}\n" for n in range(1, 30)))
    code, _, err = cagat("suggest", "graph", "--budget", 3)
    assert code == 1
    assert "--source" in err
    code, out, err = cagat("suggest", "graph", "--budget", 3, "--source", "left", "--target", "right")
    assert code == 0, err
    assert "suggestions.csv: 3 nodes" in out


def test_help_knows_every_strategy():
    assert tuple(STRATEGIES) == NAMES
