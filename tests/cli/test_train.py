import io
import json
import os
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

import processes
from cagat import data
from cagat.cli import main

OWN_GRAPH = Path(__file__).parents[2] / "examples" / "own-graph"
GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
SMALL = (
    "--dataset", GRAPH, "--labels", "5", "--val-labels", "5", "--hidden", "4", "--heads", "2", "--threads", "1",
    "--no-baselines",
)  # fmt: skip
KEYS = [
    "dataset", "model", "labels_per_class", "seed", "epochs", "best_epoch", "val_loss", "val_accuracy",
    "test_accuracy", "seconds", "run_dir",
]  # fmt: skip
NEW_KEYS = {
    "protocol", "train_nodes", "val_nodes", "test_nodes", "estimated_accuracy", "estimated_low", "estimated_high",
    "majority_rate", "balanced_accuracy", "temperature",
}  # fmt: skip


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def cagat(*arguments: object, cwd: Path | None = None) -> Done:
    """Run the command line in this process, which has all modules loaded."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["cagat", *map(str, arguments)])
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "run"
    done = cagat("train", *SMALL, "--epochs", 8, "--out", path)
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    assert str(path) in done.stdout
    return path


def test_json_is_the_only_line_of_standard_output(tmp_path):
    done = cagat("train", *SMALL, "--epochs", 2, "--seed", 1, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result)[: len(KEYS)] == KEYS
    assert set(result) >= NEW_KEYS
    assert (result["seed"], result["epochs"], result["labels_per_class"], result["model"]) == (1, 2, 5, "cagat")
    # Without --out, a directory of its own under runs/.
    assert (tmp_path / result["run_dir"] / "model.safetensors").exists()
    assert Path(result["run_dir"]).parts[0] == "runs"


def test_a_flag_wins_over_the_file_and_the_file_over_the_preset(tmp_path):
    (tmp_path / "c.yaml").write_text(f"dataset: {GRAPH}\nlabels: 5\nval-labels: 5\nepochs: 9\nlam: 0.9\nout: here\n")
    done = cagat(
        "train",
        "--config",
        "c.yaml",
        "--preset",
        "tuned",
        "--epochs",
        1,
        "--no-feedback",
        "--no-baselines",
        "--json",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    written = yaml.safe_load((tmp_path / "here" / "config.yaml").read_text())
    assert (written["epochs"], written["lam"], written["alpha"], written["feedback"]) == (1, 0.9, 0.92, False)


def test_every_flag_of_the_contract_is_there(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = cagat("train", "--help").stdout
    flags = (
        "--dataset --data-dir --feature-norm --model --preset --labels --val-labels --seed --epochs --patience --lr "
        "--weight-decay --hidden --heads --dropout --attention-dropout --alpha --lam --xi --rounds --steps --support "
        "--affinity --feedback --normalization --propagation --learn-coefficients --device --threads --deterministic "
        "--out --config --json --resume --tensorboard --batching --parts --parts-per-batch --hops --parallel"
    )
    for flag in flags.split():
        assert flag in text, flag


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (("--alpha", "2"), "alpha must be a number from 0 to 1, but is 2.0", 1),
        (("--alpha", "x"), "'--alpha'", 2),
        (("--alhpa", "0.5"), "--alpha", 2),
        (("--model", "gta"), "Did you mean gat", 1),
        (("--device", "gpu7"), "There is no device 'gpu7'", 1),
        (("--dataset", "coar"), "Did you mean cora", 1),
        (("--labels", "5000"), "labelled nodes", 1),
        (("--config", "nowhere.yaml"), "there is no such file", 1),
        (("--resume", "nowhere"), "there is no run to resume", 1),
        (("--resume", "nowhere", "--lr", "1"), "there is no run to resume", 1),
    ],
)
def test_bad_input_is_one_message(tmp_path, arguments, message, code):
    done = cagat("train", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "runs"])


def test_a_diverging_run_exits_with_3(tmp_path):
    wild = ("--preset", "paper", "--lr", 1000, "--weight-decay", 1000, "--feature-norm", "none")
    done = cagat("train", *SMALL, *wild, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "in epoch" in done.stderr
    assert "Try a smaller --lr" in done.stderr


def _cagat_that_listens(*words):
    # Who runs in the background of a shell ignores Ctrl-C, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.cagat(*words)


@pytest.mark.posix
def test_control_c_keeps_the_best_and_can_be_resumed(tmp_path):
    said, words = tmp_path / "said", ["train", *SMALL, "--epochs", "10000", "--patience", "10000", "--json"]
    process = processes.start(_cagat_that_listens, *words, "--out", tmp_path / "run", said=said)
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 150
    while not (metrics.exists() and metrics.read_text().count("\n") > 3):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    out, err = (said.with_suffix(suffix).read_text() for suffix in (".out", ".err"))
    assert process.exitcode == 130, err
    assert "Continue with: cagat train --resume" in err
    assert "Traceback" not in err
    stopped = json.loads(out)
    assert stopped["test_accuracy"] is None
    assert cagat("evaluate", tmp_path / "run").returncode == 0
    done = cagat("train", "--resume", tmp_path / "run", "--epochs", stopped["epochs"] + 2, "--json")
    assert json.loads(done.stdout)["epochs"] == stopped["epochs"] + 2


def test_predict_writes_what_the_run_wrote(run, tmp_path):
    done = cagat("predict", run, "--out", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.csv").read_bytes() == (run / "predictions.csv").read_bytes()


def test_predict_on_a_new_graph(run, tmp_path):
    new = GRAPH.replace("nodes=90", "nodes=40")
    done = cagat("predict", run, "--dataset", new, "--out", tmp_path / "p.parquet")
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert len(table["node"]) == 40
    assert set(table["split"]) == {""}


@pytest.mark.parametrize(
    ("dataset", "out", "message"),
    [
        (GRAPH.replace("features=8", "features=9"), "p.csv", "has 9 features, but the model was trained on 8"),
        (None, "p.xls", "must end in .csv or .parquet"),
    ],
)
def test_predict_refuses(run, tmp_path, dataset, out, message):
    done = cagat("predict", run, *(("--dataset", dataset) if dataset else ()), "--out", tmp_path / out)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / out).exists()


def test_evaluate(run):
    done = cagat("evaluate", run, "--json")
    found = json.loads(done.stdout)
    assert found["sizes"] == {"train": 15, "val": 15, "test": 60}
    assert found["accuracy"]["test"] == json.loads((run / "result.json").read_text())["test_accuracy"]
    assert sum(row["nodes"] for row in found["classes"]) == 60
    hits = sum(row["nodes"] * row["recall"] for row in found["classes"])
    assert hits / 60 == pytest.approx(found["accuracy"]["test"])
    assert found["measured_on"] == "test"
    low, high = found["intervals"]["test"]
    assert low < found["accuracy"]["test"] < high
    assert 0 <= found["calibration_error"] <= 100
    shown = cagat("evaluate", run).stdout
    assert "of 60 nodes, 95 % interval" in shown
    assert "expected calibration error" in shown
    assert (run / "reliability.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_on_another_graph(run, tmp_path):
    new = GRAPH.replace("seed=0", "seed=1")
    done = cagat("evaluate", run, "--dataset", new, "--plot", tmp_path / "r.png", "--json")
    assert done.returncode == 0, done.stderr
    # Its nodes have the names of those trained on, but other features: they are all new.
    assert json.loads(done.stdout)["sizes"] == {"test": 90}
    assert (tmp_path / "r.png").exists()
    same = json.loads(cagat("evaluate", run, "--dataset", GRAPH, "--json").stdout)
    own = json.loads(cagat("evaluate", run, "--json").stdout)
    assert same["sizes"] == own["sizes"]
    assert same["accuracy"] == pytest.approx(own["accuracy"])
    assert "must end in .png" in cagat("evaluate", run, "--plot", tmp_path / "r.pdf").stderr


def test_predictions_name_training_nodes(run, tmp_path):
    table = pyarrow.csv.read_csv(run / "predictions.csv").to_pydict()
    trained_on = {node for node, part in zip(table["node"], table["split"], strict=True) if part == "train"}
    named = {reason.rsplit(" ", 2)[0] for text in table["because"] if text for reason in text.split("; ")}
    assert named
    assert named <= set(map(str, trained_on))
    assert cagat("predict", run, "--no-because", "--out", tmp_path / "p.csv").returncode == 0
    assert set(pyarrow.csv.read_csv(tmp_path / "p.csv")["because"].to_pylist()) <= {"", None}
    # The same nodes in the same graph by another way are named again.
    assert cagat("predict", run, "--dataset", GRAPH, "--out", tmp_path / "q.csv").returncode == 0
    assert pyarrow.csv.read_csv(tmp_path / "q.csv")["because"].to_pylist() == table["because"]


def test_embed(run, tmp_path):
    assert cagat("embed", run, "--out", tmp_path / "e.npz").returncode == 0
    assert cagat("embed", run, "--out", tmp_path / "e.parquet").returncode == 0
    arrays = np.load(tmp_path / "e.npz", allow_pickle=False)
    table = pyarrow.parquet.read_table(tmp_path / "e.parquet")
    assert arrays["embedding"].shape == (90, 8)
    assert arrays["nodes"].tolist() == table["node"].to_pylist() == data.load(GRAPH).node_names
    assert np.array_equal(np.stack([table[f"unit_{n}"].to_numpy() for n in range(8)], axis=1), arrays["embedding"])
    assert "must end in" in cagat("embed", run, "--out", tmp_path / "e.csv").stderr
    assert cagat("embed", run).returncode == 0
    assert (run / "embedding.npz").exists()


def test_resume_takes_no_other_configuration(run):
    done = cagat("train", "--resume", run, "--lr", 1)
    assert done.returncode == 1
    assert "may change, not --lr" in done.stderr
    # What is given as it is anyway is no change.
    assert cagat("train", "--resume", run, "--seed", 0, "--no-tensorboard").returncode == 0


@pytest.mark.parametrize(
    ("found", "warning"),
    [
        ({"class_weight": "none"}, "no better than always predicting the most frequent class"),
        ({"class_weight": "balanced"}, None),
        ({"class_weight": "balanced", "balanced_accuracy": 0.5}, "balanced accuracy is no better"),
        ({"class_weight": "none", "estimated_accuracy": 0.95, "accuracy_without_graph": 0.96}, "graph does not help"),
    ],
)
def test_what_a_model_is_warned_of(found, warning):
    from cagat.cli.training_display import _warnings
    from cagat.training import RunResult

    # Worse than the most frequent class in plain accuracy, which class weights give up for the rare one.
    values = {field.name: None for field in fields(RunResult)} | {"classes": 2, "classes_predicted": 2}
    values |= {"estimated_accuracy": 0.8, "majority_rate": 0.9, "balanced_accuracy": 0.75}
    warnings = _warnings(RunResult(**values | found))
    assert warnings == [] if warning is None else warning in warnings[0]


def test_warnings_are_told_beside_json(tmp_path):
    edges = "".join(f"{node},{(node + 1) % 30}\n" for node in range(30))
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    labels = "".join(f"{node},{'rare' if node % 5 == 0 else 'frequent'}\n" for node in range(30))
    (tmp_path / "labels.csv").write_text("node,label\n" + labels)
    given = ("--dataset", tmp_path, "--class-weight", "none", "--epochs", 2, "--no-baselines")
    done = cagat("train", *given, "--out", tmp_path / "run", "--json")
    found = json.loads(done.stdout)
    assert (found["classes_predicted"], found["estimated_accuracy"]) == (1, found["majority_rate"])
    assert "Warning: the model predicts one class for every node" in done.stderr


def test_the_line_of_a_terminal_of_80_columns(monkeypatch):
    from rich.console import Console

    from cagat.cli.training_display import _Display
    from cagat.training import Epoch

    class Progressing:
        last_epoch = 9876
        history = (1, 2, 3)

    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    display = _Display(console)
    display.show(Epoch(9775, 1.2345, 1.4567, 0.8765), Progressing())
    assert "left" not in str(display.bars.tasks[0].description)  # The first epoch says nothing about the others.
    display.show(Epoch(9776, 1.2345, 1.4567, 0.8765), Progressing())
    with console.capture() as shown:
        console.print(display.bars.get_renderable())
    assert shown.get().count("\n") == 1
    assert "epoch 9776: loss 1.234, validation 1.457 (87.6 %), at least" in shown.get()
    assert "left" in shown.get()


def test_own_graph_as_in_the_example(tmp_path):
    done = cagat("train", "--dataset", OWN_GRAPH, "--epochs", 20, "--no-baselines", "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["estimated_low"] < result["estimated_accuracy"] < result["estimated_high"]
    assert (result["protocol"], result["test_accuracy"], result["train_nodes"]) == ("all", None, 180)
    assert "180 of 240 nodes are labelled" in done.stderr
    assert result["estimated_accuracy"] > 0.6
    table = pyarrow.csv.read_csv(tmp_path / "run" / "predictions.csv")
    assert table["node"][0].as_py() == "recipe-000"
    assert "probability_italian" in table.column_names
