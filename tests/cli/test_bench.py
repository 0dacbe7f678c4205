import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cagat.cli import app
from cagat.errors import CagatError, DatasetError
from cagat.experiments.bench import layers
from cagat.experiments.bench.in_turns import commit_of, measure_against, measure_dgl
from cagat.experiments.bench.layers import layer_inputs


def test_bench_writes_what_it_shows(tmp_path, monkeypatch):
    # Of other sizes each would have to be compiled.
    variants = {case: (8, 8, *others) for case, (_, _, *others) in layers._VARIANTS.items()}
    monkeypatch.setattr(layers, "_VARIANTS", variants)
    monkeypatch.setattr("cagat.experiments.bench.layers.layer_inputs", lambda name: layer_inputs("karate"))
    target = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["bench", "--quick", "--repeats", "2", "--json", str(target)])
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


def test_bench_names_a_directory_that_is_missing_before_it_measures(tmp_path):
    done = CliRunner().invoke(app, ["bench", "--json", str(tmp_path / "none" / "bench.json")])
    assert "there is no directory" in str(done.exception)


def test_it_says_why_rows_are_left_out(monkeypatch):
    def absent(name, **options):
        raise DatasetError(f"no {name}")

    monkeypatch.setattr("cagat.data.load", absent)
    done = CliRunner().invoke(app, ["bench", "--quick", "--compare"])
    assert done.exit_code == 0, done.output
    for reason in ("no cora", "no pubmed", "DGL's GATConv"):
        assert f"Left out: {reason}" in done.output
    done = CliRunner().invoke(app, ["bench", "--quick", "--compare", "--dgl", "python"])
    assert "DGL" not in done.output


def test_an_environment_without_dgl_is_named_with_the_reason():
    with pytest.raises(CagatError, match="could not run it: ModuleNotFoundError: No module named 'dgl'"):
        list(measure_dgl("karate", (1,), 3, Path(sys.executable)))


# What every checkout has, and nothing that takes seconds to import.
CHECKOUT = """
import torch
class CSRGraph:
    from_edge_index = staticmethod(lambda edges, nodes, add_self_loops: edges)
class CaGATConv(torch.nn.Module):
    def __init__(self, channels, out, heads, **options):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(channels, heads * out))
    def forward(self, x, graph):
        return x @ self.weight
"""


def test_a_checkout_against_another(monkeypatch, tmp_path):
    monkeypatch.setattr("cagat.experiments.bench.in_turns.layer_inputs", lambda name: layer_inputs("karate"))
    (tmp_path / "src" / "cagat").mkdir(parents=True)
    (tmp_path / "src" / "cagat" / "__init__.py").write_text(CHECKOUT)
    monkeypatch.setattr("cagat.experiments.bench.in_turns._SOURCE", tmp_path / "src")
    rows = measure_against(tmp_path, (1,), 2)
    row = next(rows)
    assert (row.case, row.threads, row.target) == ("layer, cora", 1, 1.05)
    assert row.peer == "commit unknown"
    assert commit_of(Path(__file__).parents[2]) != "unknown" or not Path(__file__).parents[2].joinpath(".git").exists()
    assert 0.1 < row.ratio < 10
    with pytest.raises(CagatError, match="is no checkout of cagat"):
        next(measure_against(Path(__file__).parent, (1,), 2))
