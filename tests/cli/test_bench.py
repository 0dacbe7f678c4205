import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from cagat.cli import app
from cagat.errors import DatasetError
from cagat.experiments.bench.dgl_layer import measure_dgl
from cagat.experiments.bench.measurement import Budget


def test_bench_writes_what_it_shows(tmp_path, real_graphs):
    target = tmp_path / "bench.json"
    done = CliRunner(env={"CAGAT_DATA": str(real_graphs)}).invoke(
        app, ["bench", "--quick", "--repeats", "2", "--json", str(target)]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(target.read_text())
    assert len(rows) == 2 * 2 * 3 + 6  # The variants are measured on PubMed with all threads.
    for row in rows:
        assert row["ratio"] == row["ours_ms"] / row["peer_ms"] > 0
        assert 0 < row["aim"] < row["target"]
        assert {"case", "threads", "peer"} < set(row)
        assert row["run"]["command"] == "cagat bench --quick --repeats 2"
    assert {(row["threads"], row["case"].split(", ")[-1]) for row in rows} == {
        (threads, name) for threads in (1, 2) for name in ("cora", "pubmed")
    }
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_a_graph_that_cannot_be_had_leaves_its_rows_out(monkeypatch):
    def absent(name, **options):
        raise DatasetError(f"no {name}")

    monkeypatch.setattr("cagat.data.load", absent)
    done = CliRunner().invoke(app, ["bench", "--quick", "--compare"])
    assert done.exit_code == 0, done.output
    assert "Left out: no cora" in done.output
    assert "Left out: no pubmed" in done.output


def test_bench_names_a_directory_that_is_missing_before_it_measures(tmp_path):
    done = CliRunner().invoke(app, ["bench", "--json", str(tmp_path / "none" / "bench.json")])
    assert "there is no directory" in str(done.exception)


def test_compare_says_why_dgl_is_not_measured(monkeypatch):
    def absent(name, **options):
        raise DatasetError(f"no {name}")

    monkeypatch.setattr("cagat.data.load", absent)
    done = CliRunner().invoke(app, ["bench", "--quick", "--compare"])
    assert "Left out: DGL's GATConv" in done.output
    done = CliRunner().invoke(app, ["bench", "--quick", "--compare", "--dgl", "python"])
    assert "DGL" not in done.output


def test_an_environment_without_dgl_is_named_with_the_reason():
    reasons = []
    rows = measure_dgl("karate", (1,), Budget(0.1, 3), Path(sys.executable), reasons.append)
    assert list(rows) == []
    assert "could not run it: ModuleNotFoundError: No module named 'dgl'" in reasons[0]
