import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cagat.cli import app
from cagat.errors import ConfigError, DatasetError
from cagat.explore import attention_agreement, write_page
from cagat.explore.explored_run import ExploredRun
from cagat.explore.explorer_page import packed
from cagat.files import WriteError


def unpacked(field):
    import base64

    kinds = {"Uint8": "u1", "Int16": "<i2", "Int32": "<i4"}
    return np.frombuffer(base64.b64decode(field["data"]), dtype=kinds[field["kind"]]) * field["scale"]


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.mark.parametrize(
    ("values", "kind"), [([0, 255], "Uint8"), ([-1, 5], "Int16"), ([40000], "Int32"), ([], "Uint8")]
)
def test_whole_numbers_are_packed_narrowly(values, kind):
    field = packed(np.array(values, dtype=np.int64))
    assert field["kind"] == kind
    assert unpacked(field).tolist() == values


def test_numbers_are_rounded_little():
    values = np.random.default_rng(0).normal(size=100)
    np.testing.assert_allclose(unpacked(packed(values)), values, atol=np.abs(values).max() / 65000)
    assert unpacked(packed([0.0, np.nan])).tolist() == [0, 0]


def test_the_page_needs_nothing_else(run, tmp_path):
    summary = write_page(run, tmp_path / "page.html", command="cagat explore <R>")
    text = summary.path.read_text(encoding="utf-8")
    assert (summary.nodes, summary.shown, summary.size) == (60, 60, len(text.encode()))
    assert summary.size < 15e6
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|img|iframe)[^>]*\ssrc=|<link", text.replace(_plotly(), ""))
    assert "cagat explore &lt;R&gt;" in text
    assert "window.harmed = 1</script>" not in text
    assert data_of(summary.path)["classes"][:2] == ['"></script><script>window.harmed = 1</script>', "<b>bold</b>"]


def test_names_that_are_not_text(run, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.html")
    summary = write_page(run, path, command=f"cagat explore RUN --out {path}")
    assert summary.size == path.stat().st_size
    assert r"\udcff.html" in path.read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def test_some_nodes_only(run, tmp_path):
    summary = write_page(run, tmp_path / "page.html", nodes=5, wanted=("node 1",))
    data = data_of(summary.path)
    shown = unpacked(data["shown"]).astype(int).tolist()
    assert len(shown) in (5, 6)
    assert ExploredRun.of(run).node("node 1") in shown
    assert len(data["names"]) == 60
    offsets = unpacked(data["offsets"])
    assert len(unpacked(data["layers"][0]["onEdges"])) == 3 * 3 * offsets[-1]


def test_which_nodes(run, monkeypatch):
    explored = ExploredRun.of(run)
    tests = set(explored.run.problem.split.test.tolist())
    assert set(explored.sample(10).tolist()) <= tests
    assert len(explored.sample()) == 60
    assert set(explored.sample(tests_only=True).tolist()) == tests
    with pytest.raises(ConfigError, match="at least 1, but is 0"):
        explored.sample(0)
    with pytest.raises(DatasetError, match="no node called 'x'"):
        explored.sample(3, ("x",))
    monkeypatch.setattr("cagat.explore.explored_run.ALL_UP_TO", 50)
    monkeypatch.setattr("cagat.explore.explored_run.SAMPLE", 7)
    assert len(explored.sample()) == 7


def test_a_page_stays_light_unless_more_is_asked_for(run, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("cagat.explore.explorer_page._MOST_NUMBERS", 10_000)
    monkeypatch.setattr("cagat.explore.explorer_page._HEAVY", 1000)
    summary = write_page(run, tmp_path / "page.html", wanted=("node 1",))
    assert 1 < summary.shown < 40
    assert ExploredRun.of(run).node("node 1") in unpacked(data_of(summary.path)["shown"])
    assert "Ask for fewer --nodes" in caplog.text
    assert write_page(run, tmp_path / "page.html", nodes=60).shown == 60


def test_a_graph_without_labelled_test_nodes(run, tmp_path):
    explored = ExploredRun.of(run)
    explored.labels[explored.run.problem.split.test.numpy()] = -1
    with pytest.raises(DatasetError, match="no test node has a label"):
        attention_agreement(explored)
    summary = write_page(explored, tmp_path / "page.html", nodes=2)
    assert data_of(summary.path)["figures"].keys() == {"entropy", "training-curves"}


def test_the_command(run, tmp_path):
    from typer.testing import CliRunner

    out = tmp_path / "e.html"
    done = CliRunner().invoke(app, ["explore", str(run.directory.path), "--out", str(out), "--nodes", "3"])
    assert done.exit_code == 0, done.output
    assert "60 nodes, 3 with their attention" in done.output
    assert out.exists()
    wrong = CliRunner().invoke(app, ["explore", str(run.directory.path), "--out", str(tmp_path / "e.pdf")])
    assert "must end in .html" in str(wrong.exception)


def test_a_page_that_cannot_be_written(run, tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(WriteError):
        write_page(run, tmp_path / "page.html", nodes=1)


def test_without_plotly_there_is_a_remedy():
    code = "import sys; sys.modules['plotly'] = None; import cagat.explore"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "CagatError: cagat.explore needs the package plotly" in done.stderr
    assert "pip install 'cagat[explore]'" in done.stderr


def test_readings_and_models_of_other_kinds(train, graph_folder, tmp_path):
    edges = train(
        tmp_path / "edges", graph_folder, hidden=2, heads=1, support="edges", normalization="row", rounds=1, layers=1
    )
    data = data_of(write_page(edges, tmp_path / "edges.html").path)
    # S stays on the edges, so that no other pair has any.
    assert set(unpacked(data["layers"][0]["others"])) == {-1}
    labelprop = train(tmp_path / "labelprop", graph_folder, model="labelprop", epochs=None)
    data = data_of(write_page(labelprop, tmp_path / "labelprop.html").path)
    assert data["layers"] == []
    assert "labelprop has no attention" in data["note"]


def test_coefficients_that_were_learnt(run, train, graph_folder, tmp_path):
    learnt = train(
        tmp_path / "run", graph_folder, hidden=2, heads=2, learn_coefficients=True, alpha=0.4, xi=0.0, lr=0.1
    )
    text = write_page(learnt, tmp_path / "page.html", nodes=1).path.read_text(encoding="utf-8")
    low, high = re.search(r"<li>alpha <b>([\d.]+) to ([\d.]+), learnt from 0\.4</b></li>", text).groups()
    values = [float(value) for conv in learnt.model.convs for value in conv.coefficients().alpha.detach()]
    assert (float(low), float(high)) == pytest.approx((min(values), max(values)), abs=1e-3)
    assert max(abs(value - 0.4) for value in values) > 2e-3
    # What is at an end of its range is not learnt.
    assert "<li>xi <b>0</b></li>" in text
    fixed = write_page(run, tmp_path / "fixed.html", nodes=1).path.read_text(encoding="utf-8")
    assert "<li>xi <b>0.05</b></li>" in fixed
