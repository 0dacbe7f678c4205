import json
import math
import os
import re
import shutil
import statistics

import pytest

from cagat.cli import app
from cagat.errors import ConfigError
from cagat.experiments.run_report import write_run_report
from cagat.training import Run, TrainConfig
from cagat.training.run_directory import RunError

GRAPH = "synthetic:nodes=150,degree=4,classes=3,features=8,seed=0"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models and a variant on two splits each."""
    folder, found = tmp_path_factory.mktemp("runs"), {}
    variants = {
        "mlp": {"model": "mlp", "epochs": 4, "hidden": 16},
        "wide": {"model": "mlp", "epochs": 4, "hidden": 32},
        "logreg": {"model": "logreg"},
    }
    for name, changes in variants.items():
        for seed in (0, 1):
            values = {
                "dataset": GRAPH,
                "labels": 5,
                "val_labels": 5,
                "threads": 1,
                "seed": seed,
                "baselines": False,
            } | changes
            out = folder / f"{name}{seed}"
            found[name, seed] = (out, Run.start(TrainConfig.from_values(values), out).train())
    return found


def paths(runs):
    return [path for path, _ in runs.values()]


def test_means_and_paired_differences(runs, tmp_path):
    written = write_run_report(paths(runs), tmp_path / "compared.html", "cagat report ...")
    assert [path.name for path in written] == [
        "compared.html", "compared.md", "compared-accuracy.svg", "compared-losses.svg",
    ]  # fmt: skip
    text = (tmp_path / "compared.md").read_text()
    accuracy = {key: 100 * result.test_accuracy for key, (_, result) in runs.items()}
    ours, theirs = ([accuracy[name, seed] for seed in (0, 1)] for name in ("mlp", "logreg"))
    assert f"{statistics.fmean(ours):.2f} ± {statistics.stdev(ours):.2f}" in text
    difference = [one - other for one, other in zip(ours, theirs, strict=True)]
    mean, half = statistics.fmean(difference), 12.7062 * statistics.stdev(difference) / 2**0.5
    line = next(line for line in text.splitlines() if "| logreg |" in line and "hidden=16" in line)
    assert f"{mean:+.2f}" in line
    low, high = map(float, re.search(r"([+-][\d.]+) to ([+-][\d.]+)", line).groups())
    assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.011)
    # Configurations that are otherwise the same are told apart by what differs.
    assert "mlp hidden=32" in text
    assert text.count("| mlp |") >= 4
    html = (tmp_path / "compared.html").read_text()
    assert html.count("<svg") == 2
    assert "default-src 'none'" in html


def test_other_test_nodes_are_not_paired(tmp_path):
    found = []
    for val_labels in (5, 9):
        for seed in (0, 1):
            values = {"dataset": GRAPH, "model": "logreg", "labels": 5, "val_labels": val_labels, "seed": seed}
            found.append(tmp_path / f"{val_labels}-{seed}")
            Run.start(TrainConfig.from_values(values | {"threads": 1, "baselines": False}), found[-1]).train()
    write_run_report(found, tmp_path / "r", "c")
    text = (tmp_path / "r.md").read_text()
    assert "There is nothing to compare" in text
    assert "| logreg val_labels=5 |" in text
    assert "| logreg val_labels=9 |" in text


def test_a_single_run(runs, tmp_path):
    write_run_report([runs["logreg", 0][0]], tmp_path / "one", "c")
    text = (tmp_path / "one.md").read_text()
    assert "on one split each" in text
    assert "There is nothing to compare" in text
    assert not (tmp_path / "one-losses.svg").exists()


def test_what_cannot_be_reported(runs, tmp_path):
    with pytest.raises(RunError, match=r"there is no run\. Train one: cagat train --out"):
        write_run_report([tmp_path], tmp_path / "r", "c")
    with pytest.raises(ConfigError, match=r"same configuration on the same split\. Leave one out"):
        write_run_report([runs["mlp", 0][0]] * 2, tmp_path / "r", "c")
    unfinished = Run.start(TrainConfig.from_values({"dataset": GRAPH, "model": "mlp", "epochs": 9}), tmp_path / "u")
    unfinished.train(should_stop=lambda: True)
    with pytest.raises(RunError, match=r"not finished\. Continue it: cagat train --resume"):
        write_run_report([tmp_path / "u"], tmp_path / "r", "c")


@pytest.mark.parametrize("losses", [[math.nan], [math.inf, -math.inf]])
def test_losses_without_a_place_in_a_picture_are_gaps(runs, tmp_path, losses):
    found = []
    for seed in (0, 1):
        found.append(tmp_path / str(seed))
        shutil.copytree(runs["mlp", seed][0], found[-1])
        loss = losses[seed % len(losses)]
        path = found[-1] / "metrics.jsonl"
        lines = [json.loads(line) | {"loss": loss, "val_loss": loss} for line in path.read_text().splitlines()]
        path.write_text("\n".join(map(json.dumps, lines)))
    assert tmp_path / "r-losses.svg" in write_run_report(found, tmp_path / "r", "c")


def test_names_that_are_not_text(runs, tmp_path):
    run = tmp_path / os.fsdecode(b"\xffrun")
    shutil.copytree(runs["mlp", 0][0], run)
    out = tmp_path / os.fsdecode(b"\xff")
    written = write_run_report([run], out, f"cagat report {run}")
    assert all(path.exists() for path in written)
    assert r"\udcffrun" in written[1].read_text()


def test_the_command(runs, tmp_path):
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, ["report", *map(str, paths(runs)), "--out", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "r.html" in done.output
