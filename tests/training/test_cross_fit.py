"""Training on all labels."""

import json

import pyarrow.csv
import pytest
import torch

from cagat import data
from cagat.errors import ConfigError, DatasetError
from cagat.experiments.run_report import FinishedRun, grouped
from cagat.settings import TrainConfig
from cagat.training import Run
from cagat.training.cross_fit import CrossFit, folds_of
from cagat.training.estimate import accuracy_without_graph
from cagat.training.problem import Problem
from cagat.training.run_directory import RunError

GRAPH = "synthetic:nodes=300,degree=6,classes=3,features=40,seed=0"


def config(**values):
    return TrainConfig.from_values(
        {"dataset": GRAPH, "protocol": "all", "epochs": 4, "threads": 1, "baselines": False} | values
    )


def own_graph(directory, classes=("a", "b"), per_class=(8, 8), nodes=40):
    directory.mkdir()
    labels = [name for name, count in zip(classes, per_class, strict=True) for _ in range(count)]
    edges = [f"n{i},n{(i + step) % nodes}" for i in range(nodes) for step in (1, 2)]
    (directory / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    rows = [f"n{i},{i % 7},{(i * i) % 5}" for i in range(nodes)]
    (directory / "features.csv").write_text("node,x,y\n" + "\n".join(rows) + "\n")
    (directory / "labels.csv").write_text("node,label\n" + "".join(f"n{i},{one}\n" for i, one in enumerate(labels)))
    return directory


def test_folds_hold_every_class_evenly_and_depend_on_the_seed_alone():
    classes = torch.tensor([0] * 23 + [1] * 10 + [2] * 7)
    fold = folds_of(classes, 0)
    assert torch.equal(fold, folds_of(classes, 0))
    assert not torch.equal(fold, folds_of(classes, 1))
    for number in range(3):
        sizes = torch.bincount(fold[classes == number], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert folds_of(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0) is None


def test_every_label_trains_and_no_model_judges_its_own(tmp_path):
    trainers = []
    result = Run.start(config(), tmp_path / "run").train(lambda epoch, trainer: trainers.append(trainer))
    trainer = trainers[0]
    assert isinstance(trainer, CrossFit)
    assert trainer.plan.train.nodes.numel() == 300
    held_out = torch.cat([fold.plan.val.nodes for fold in trainer.folds])
    assert held_out.sort().values.tolist() == list(range(300))
    for fold in trainer.folds:
        assert not set(fold.plan.val.nodes.tolist()) & set(fold.plan.train.nodes.tolist())
    table = pyarrow.csv.read_csv(tmp_path / "run" / "out_of_fold.csv").to_pydict()
    right = sum(map(str.__eq__, map(str, table["predicted"]), map(str, table["label"])))
    assert result.estimated_accuracy == pytest.approx(right / 300)
    assert (result.protocol, result.train_nodes, result.val_nodes, result.test_nodes) == ("all", 300, 0, 0)
    assert result.test_accuracy is None
    assert result.estimated_low < result.estimated_accuracy < result.estimated_high
    assert json.loads((tmp_path / "run" / "result.json").read_text())["estimated_on"] == 300


@pytest.mark.parametrize("model", ["cagat", "dgi", "labelprop"])
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path, model):
    values = {"model": model} if model == "labelprop" else {"model": model, "epochs": 5}
    plain = TrainConfig.from_values({"dataset": GRAPH, "protocol": "all", "threads": 1, "baselines": False} | values)
    Run.start(plain, tmp_path / "whole").train()
    run, seen = Run.start(plain, tmp_path / "cut"), []
    run.save_every = 0
    run.train(lambda epoch, trainer: seen.append(epoch), lambda: len(seen) == 2)
    assert (tmp_path / "cut" / "result.json").exists() == (model == "labelprop")
    Run.resume(tmp_path / "cut").train()
    for name in ("metrics.jsonl", "predictions.csv", "out_of_fold.csv", "model.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes(), name


def test_damaged_predictions_out_of_fold_are_written_anew(tmp_path):
    Run.start(config(epochs=2), tmp_path / "run").train()
    path = tmp_path / "run" / "out_of_fold.csv"
    whole = path.read_bytes()
    without_the_last_row = b"".join(whole.splitlines(keepends=True)[:-1])
    for damaged in (b"", whole[: len(whole) // 2], whole.replace(b"label", b"lable", 1), without_the_last_row):
        path.write_bytes(damaged)
        Run.resume(tmp_path / "run").train(lambda *_: pytest.fail("an epoch was run"))
        assert path.read_bytes() == whole
    path.unlink()
    Run.resume(tmp_path / "run").train()
    assert path.read_bytes() == whole


def test_the_default_for_a_graph_of_ones_own(tmp_path, caplog):
    graph = str(own_graph(tmp_path / "graph"))
    caplog.set_level("INFO")
    result = Run.start(TrainConfig.from_values({"dataset": graph, "epochs": 3}), tmp_path / "run").train()
    assert (result.protocol, result.train_nodes, result.estimated_on) == ("all", 16, 16)
    assert 0 <= result.accuracy_without_graph <= 1
    assert "16 of 40 nodes are labelled" in caplog.text
    assert "all 16 train the model. 5 folds" in caplog.text
    drawn = Problem.load(TrainConfig.from_values({"dataset": graph, "labels": 2, "val_labels": 0}))
    assert (drawn.protocol, *map(len, drawn.split)) == ("split", 4, 0, 12)
    shares = Problem.load(TrainConfig.from_values({"dataset": graph, "train_fraction": 0.5, "val_fraction": 0.25}))
    assert tuple(map(len, shares.split)) == (8, 4, 4)
    assert (
        Problem.load(TrainConfig.from_values({"dataset": "karate", "labels": 1, "val_labels": 1})).protocol == "split"
    )


def test_too_few_labels_for_folds_take_a_fixed_number_of_epochs(tmp_path, caplog):
    graph = str(own_graph(tmp_path / "graph", per_class=(3, 3)))
    caplog.set_level("INFO")
    result = Run.start(TrainConfig.from_values({"dataset": graph, "fixed_epochs": 4}), tmp_path / "run").train()
    assert (result.epochs, result.best_epoch) == (4, 4)
    assert (result.estimated_accuracy, result.val_loss, result.test_accuracy) == (None, None, None)
    assert result.temperature == 1
    assert "too few for folds" in caplog.text
    assert not (tmp_path / "run" / "out_of_fold.csv").exists()
    again = Run.resume(tmp_path / "run").train(lambda *_: pytest.fail("an epoch was run"))
    assert again == result


def test_a_class_with_one_label_is_named(tmp_path):
    graph = str(own_graph(tmp_path / "graph", per_class=(8, 1)))
    problem = Problem.load(TrainConfig.from_values({"dataset": graph}))
    alone = problem.graph.class_names[int(problem.graph.y[problem.graph.y >= 0].bincount().argmin())]
    assert f"One label alone is learnt but cannot be checked: {alone!r}. Label more of" in problem.summary()


@pytest.mark.parametrize("values", [{"train_fraction": 0.5, "val_fraction": 0.2}, {"labels": 4, "val_labels": 2}])
def test_a_class_that_some_part_lacks_is_named(tmp_path, values):
    graph = str(own_graph(tmp_path / "graph", per_class=(8, 1)))
    summary = Problem.load(TrainConfig.from_values({"dataset": graph} | values)).summary()
    said = "Smaller classes give what they have: b (1)." if "labels" in values else "Not every part has nodes of 'b'."
    assert summary.endswith(said)


def test_rare_classes_weigh_more_where_one_class_has_most_labels(tmp_path):
    graph = str(own_graph(tmp_path / "graph", per_class=(24, 6)))
    weights = {
        choice: Problem.load(TrainConfig.from_values({"dataset": graph, "class_weight": choice})).class_weight
        for choice in ("auto", "balanced", "none")
    }
    assert weights["none"] is None
    assert weights["auto"].tolist() == weights["balanced"].tolist() == [30 / 48, 30 / 12]
    even = str(own_graph(tmp_path / "even"))
    assert Problem.load(TrainConfig.from_values({"dataset": even, "class_weight": "balanced"})).class_weight is None


def test_test_nodes_of_a_given_split_stay_unseen():
    graph = data.load(GRAPH)
    graph.test_mask = torch.arange(300) < 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cagat.training.problem.load_graph", lambda *_: graph)
        problem = Problem.load(config())
    assert tuple(map(len, problem.split)) == (200, 0, 100)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"protocol": "all", "labels": 5}, "labels draws a split, but protocol=all"),
        ({"labels": 5, "train_fraction": 0.1}, "Give one kind"),
        ({"val_fraction": 0.1}, "needs train_fraction"),
        ({"protocol": "all", "parallel": "graph"}, "Use protocol=split"),
    ],
)
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_values(values)


def test_one_class_is_nothing_to_learn(tmp_path):
    graph = str(own_graph(tmp_path / "graph", classes=("a",), per_class=(9,)))
    with pytest.raises(DatasetError, match="all labels are 'a'"):
        Problem.load(TrainConfig.from_values({"dataset": graph}))


def test_the_perceptron_sees_scaled_features_and_never_the_graph(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        "cagat.training.estimate.make_trainer", lambda config, *_: made.append(config) or pytest.fail("stop here")
    )
    problem = Problem.load(config())
    with pytest.raises(pytest.fail.Exception):
        accuracy_without_graph(config(feature_norm="l1"), problem)
    assert (made[0].model, made[0].feature_norm) == ("mlp", "l1")
    problem.graph.structural = True
    assert accuracy_without_graph(config(), problem) is None

    def broken(*_):
        raise DatasetError("no memory")

    problem.graph.structural = False
    monkeypatch.setattr("cagat.training.estimate.make_trainer", broken)
    assert accuracy_without_graph(config(), problem) is None


def test_reports_say_that_there_are_no_test_nodes_and_tell_splits_apart(tmp_path):
    Run.start(config(epochs=2), tmp_path / "all").train()
    with pytest.raises(RunError, match="has no test nodes, and a report compares test accuracies"):
        FinishedRun.read(tmp_path / "all")
    groups = []
    for share in (0.2, 0.4):
        values = {"dataset": GRAPH, "train_fraction": share, "val_fraction": 0.2, "epochs": 2, "baselines": False}
        Run.start(TrainConfig.from_values(values), tmp_path / str(share)).train()
        groups += grouped([FinishedRun.read(tmp_path / str(share))])
    assert groups[0].splits != groups[1].splits
