import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from typer.testing import CliRunner

from cagat import data
from cagat.cli import app
from cagat.errors import DamagedFileError
from cagat.training import Run, TrainConfig
from cagat.training.doubts import OutOfFold, find_doubts
from cagat.training.run_directory import RunDirectory, RunError

ROWS = """node,label,predicted,probability_=a,probability_b,probability_c
1,'=a,'=a,0.6,0.3,0.1
2,'=a,b,0.2,0.7,0.1
'=x,b,c,0.05,0.0,0.95
4,c,b,0.3,0.36,0.34
"""


@pytest.fixture
def directory(tmp_path):
    found = RunDirectory(tmp_path)
    found.out_of_fold.write_text(ROWS)
    return found


def test_the_gravest_doubts_come_first(directory):
    found = OutOfFold.read(directory)
    assert found.classes == ["=a", "b", "c"]
    assert found.labels.tolist() == [0, 0, 1, 2]
    doubts = find_doubts(found)
    assert [doubt.node for doubt in doubts] == ["=x", "2", "4"]
    assert doubts[0][1:] == pytest.approx(("b", "c", 0.0, 0.95, 0.025))
    assert doubts[1][1:] == pytest.approx(("=a", "b", 0.2, 0.7, 0.25))


def test_what_is_written_comes_back(directory):
    found = OutOfFold.read(directory)
    found.write(directory)
    again = OutOfFold.read(directory)
    assert (again.nodes, again.classes) == (found.nodes, found.classes)
    assert np.array_equal(again.labels, found.labels)
    assert np.array_equal(again.probabilities, found.probabilities)


def test_margins_are_those_of_confident_learning():
    random = np.random.default_rng(0)
    shares, labels = random.dirichlet(np.ones(4), 200), random.integers(0, 4, 200)
    doubts = find_doubts(OutOfFold([str(node) for node in range(200)], labels, list("abcd"), shares))
    assert {int(doubt.node) for doubt in doubts} == set(np.flatnonzero(shares.argmax(axis=1) != labels).tolist())
    margins = [doubt.margin for doubt in doubts]
    assert margins == sorted(margins)
    for doubt in doubts:
        row, label = shares[int(doubt.node)], labels[int(doubt.node)]
        assert doubt.margin == pytest.approx((row[label] - np.delete(row, label).max() + 1) / 2)
        assert doubt.label_probability == row[label]


def test_a_run_without_folds_says_how_to_get_them(tmp_path):
    with pytest.raises(RunError, match="cagat train --protocol all"):
        OutOfFold.read(RunDirectory(tmp_path))


@pytest.mark.parametrize("text", ["", "node,label\n1,a\n", ROWS.replace("4,c", "4,d"), ROWS.replace("0.36", "x")])
def test_damage_is_told(directory, text):
    directory.out_of_fold.write_text(text)
    with pytest.raises(DamagedFileError, match=r"out_of_fold\.csv: cannot be read"):
        OutOfFold.read(directory)


def test_the_command(directory, tmp_path):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["doubts", str(tmp_path), *arguments])

    shown = run("--top", "2", "--out", str(tmp_path / "d.csv"))
    assert shown.exit_code == 0, shown.output
    assert "3 of 4 labels differ from the prediction" in shown.output
    assert "=x" in shown.output
    table = pyarrow.csv.read_csv(tmp_path / "d.csv")
    assert table["node"].to_pylist() == ["'=x", "2", "4"]
    found = json.loads(run("--top", "1", "--json").output)
    assert (found["labelled"], found["doubted"], len(found["doubts"])) == (4, 3, 1)
    assert found["doubts"][0]["node"] == "=x"
    run("--out", str(tmp_path / "d.parquet"))
    assert pyarrow.parquet.read_table(tmp_path / "d.parquet")["node"].to_pylist() == ["=x", "2", "4"]
    assert "must end in" in str(run("--out", str(tmp_path / "d.xls")).exception)
    directory.out_of_fold.unlink()
    assert "--protocol all" in str(run().exception)


@pytest.mark.slow
def test_flipped_labels_of_cora_are_found(tmp_path):
    """Of 140 labels, 20 in each class, a tenth is wrong: most of these are among the first 20 doubts."""
    graph = data.load("cora")
    train = data.split(graph.y, 20, 0, seed=100).train
    random = np.random.default_rng(0)
    flipped = torch.from_numpy(random.choice(train.numpy(), 14, replace=False))
    count = len(graph.class_names)
    y = torch.full_like(graph.y, -1)
    y[train] = graph.y[train]
    y[flipped] = (y[flipped] + torch.from_numpy(random.integers(1, count, 14))) % count
    graph.y = y
    data.save(graph, tmp_path / "cora.npz")
    # Six models in lockstep: without a bound they did not end within the five minutes that a test has.
    values = {"dataset": str(tmp_path / "cora.npz"), "protocol": "all", "epochs": 100, "baselines": False}
    config = TrainConfig.from_values(values)
    Run.start(config, tmp_path / "run").train()
    found = find_doubts(OutOfFold.read(RunDirectory(tmp_path / "run")))
    wrong = {graph.node_names[node] for node in flipped}
    hits = sum(doubt.node in wrong for doubt in found[:20])
    print(f"{hits} of {len(wrong)} flipped labels are among the first 20 of {len(found)} doubts")
    assert hits >= 0.6 * len(wrong)
