import json

from typer.testing import CliRunner

from cagat.cli import app


def test_bench_writes_what_it_shows(tmp_path):
    target = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["bench", "--repeats", "2", "--json", str(target)])
    assert done.exit_code == 0, done.output
    rows = json.loads(target.read_text())
    assert {row["threads"] for row in rows} == {1, 2}
    assert len(rows) == 6
    for row in rows:
        assert row["ratio"] == row["ours_ms"] / row["peer_ms"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_bench_names_a_directory_that_is_missing_before_it_measures(tmp_path):
    done = CliRunner().invoke(app, ["bench", "--json", str(tmp_path / "none" / "bench.json")])
    assert "there is no directory" in str(done.exception)
