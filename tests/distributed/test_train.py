"""`cagat train` under torchrun."""

import json
from pathlib import Path

import pytest

from cagat.training import Run, TrainConfig
from distributed.torchrun import torchrun
from processes import cagat, run_ranks

GRAPH = "synthetic:nodes=200,degree=4,classes=3,features=8,seed=0"
SMALL = ("-m", "cagat", "train", "--dataset", GRAPH, "--labels", 5, "--val-labels", 5, "--hidden", 4, "--heads", 2)


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("alone") / "run"
    values = {"dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "heads": 2, "epochs": 6, "threads": 1}
    Run.start(TrainConfig.from_values(values | {"baselines": False}), path).train()
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Two processes, three epochs, then resumed for three more, which torchrun need not start."""
    path = tmp_path_factory.mktemp("shared") / "run"
    printed = torchrun(2, *SMALL, "--epochs", 3, "--no-baselines", "--parallel", "graph", "--out", path, "--json")
    assert json.loads(printed)["epochs"] == 3
    # One line: the first process prints, the others do not.
    run_ranks(2, cagat, "train", "--resume", path, "--epochs", 6, "--json", said=path.parent)
    assert json.loads((path.parent / "0.out").read_text())["epochs"] == 6
    assert (path.parent / "1.out").read_text() == ""
    return path


def test_two_processes_train_and_resume_as_one_does(alone, shared):
    for ours, theirs in zip(metrics(shared), metrics(alone), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
    results = [json.loads((path / "result.json").read_text()) for path in (alone, shared)]
    assert results[0]["val_loss"] == pytest.approx(results[1]["val_loss"], rel=1e-4)
    assert results[0]["test_accuracy"] == pytest.approx(results[1]["test_accuracy"], abs=0.02)


def test_the_report_of_a_run(shared):
    report = json.loads((shared / "parallel.json").read_text())
    assert (report["parallel"], report["processes"], len(report["ranks"])) == ("graph", 2, 2)
    for rank in report["ranks"]:
        assert rank["halo_bytes_per_step"] == rank["forecast_halo_bytes_per_step"] > 0
        assert rank["reduced_bytes_per_step"] == rank["forecast_reduced_bytes_per_step"] > 0
        assert rank["peak_memory_bytes"] > 0
    assert sum(rank["nodes"] for rank in report["ranks"]) == 200
