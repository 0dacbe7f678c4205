import json

from typer.testing import CliRunner

from cagat.cli import app
from cagat.errors import DatasetError


def test_bench_writes_what_it_shows(tmp_path, real_graphs):
    target = tmp_path / "bench.json"
    done = CliRunner(env={"CAGAT_DATA": str(real_graphs)}).invoke(
        app, ["bench", "--quick", "--repeats", "2", "--json", str(target)]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(target.read_text())
    assert len(rows) == 2 * 2 * 3
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
