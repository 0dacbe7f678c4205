import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
import torch

from cagat import data
from cagat.errors import CagatError, ConfigError, DamagedFileError, DatasetError
from cagat.files import InUseError, WriteError
from cagat.safetensors_file import read_tensors
from cagat.training import DivergedError, Run, TrainConfig, TrainedRun
from cagat.training.run_directory import RunDirectory, RunError

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
SMALL = {
    "dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "heads": 2, "epochs": 12, "threads": 1,
    "baselines": False,
}  # fmt: skip
COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv", "config.yaml")


def stop_at_once(run: Run) -> None:
    """Leave a run after its first epoch."""
    run.train(should_stop=lambda: True)


def start(out: Path, **changes) -> Run:
    return Run.start(TrainConfig.from_values(SMALL | changes), out)


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in COMPARED}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("run") / "unbroken"
    start(path).train()
    return path


def test_the_run_directory(unbroken):
    names = {path.name for path in unbroken.iterdir()}
    assert names >= {
        "config.yaml",
        "metrics.jsonl",
        "model.safetensors",
        "model.safetensors.sha256",
        "checkpoint.safetensors",
    }
    assert names >= {"predictions.csv", "curves.png", "result.json"}
    metrics = [json.loads(line) for line in (unbroken / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in metrics] == list(range(1, 13))
    assert metrics[0].keys() == {"epoch", "loss", "val_loss", "val_accuracy"}
    assert (unbroken / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_result_is_that_of_the_best_epoch(unbroken):
    result = json.loads((unbroken / "result.json").read_text())
    metrics = [json.loads(line) for line in (unbroken / "metrics.jsonl").read_text().splitlines()]
    best = min(metrics, key=lambda line: line["val_loss"])
    assert result["best_epoch"] == best["epoch"]
    assert result["val_loss"] == pytest.approx(best["val_loss"])
    assert result["val_accuracy"] == best["val_accuracy"]
    assert (result["labels_per_class"], result["epochs"], result["run_dir"]) == (5, 12, str(unbroken))


def test_predictions_agree_with_the_result(unbroken):
    table = pyarrow.csv.read_csv(unbroken / "predictions.csv").to_pydict()
    graph = data.load(GRAPH)
    assert [str(node) for node in table["node"]] == graph.node_names
    shares = [table[f"probability_{name}"] for name in graph.class_names]
    assert all(sum(row) == pytest.approx(1) for row in zip(*shares, strict=True))
    test = [node for node, part in enumerate(table["split"]) if part == "test"]
    right = sum(str(table["predicted"][node]) == graph.class_names[graph.y[node]] for node in test)
    assert right / len(test) == pytest.approx(json.loads((unbroken / "result.json").read_text())["test_accuracy"])
    assert table["split"].count("train") == table["split"].count("val") == 15


@pytest.mark.parametrize("stop_after", [1, 5, 11])
def test_an_interrupted_run_resumes_to_the_same_bits(unbroken, tmp_path, stop_after):
    run, done = start(tmp_path / "run"), []
    run.train(lambda epoch, trainer: done.append(epoch), lambda: len(done) == stop_after)
    assert not run.directory.result.exists()
    # The best weights so far can be used.
    assert TrainedRun(tmp_path / "run").evaluate().accuracy["train"] > 0
    torch.rand(7)
    Run.resume(tmp_path / "run").train()
    assert contents(tmp_path / "run") == contents(unbroken)


def test_a_finished_run_is_not_run_again(unbroken):
    before = (unbroken / "model.safetensors").stat().st_mtime_ns
    result = Run.resume(unbroken).train(lambda epoch, trainer: pytest.fail("an epoch was run"))
    assert (unbroken / "model.safetensors").stat().st_mtime_ns == before
    assert result.epochs == 12


def test_a_finished_run_can_be_prolonged(unbroken, tmp_path):
    start(tmp_path / "run", epochs=7).train()
    Run.resume(tmp_path / "run", epochs=12).train()
    assert contents(tmp_path / "run") == contents(unbroken)


def test_same_seed_same_bits_and_another_seed_others(unbroken, tmp_path):
    torch.rand(3)
    start(tmp_path / "same").train()
    assert contents(tmp_path / "same") == contents(unbroken)
    start(tmp_path / "other", seed=1).train()
    assert (tmp_path / "other/model.safetensors").read_bytes() != (unbroken / "model.safetensors").read_bytes()


def test_deterministic_is_the_same_with_any_number_of_threads(tmp_path):
    weights = set()
    for threads in (1, 2, 4):
        start(tmp_path / str(threads), threads=threads, deterministic=True, epochs=3).train()
        weights.add((tmp_path / str(threads) / "model.safetensors").read_bytes())
    assert len(weights) == 1
    assert not torch.are_deterministic_algorithms_enabled()


def test_labels_of_test_nodes_are_not_read(unbroken, tmp_path, monkeypatch):
    load = data.load

    def with_false_labels(*arguments, **options):
        graph = load(*arguments, **options)
        test = data.split(graph.y, 5, 5, 0).test
        graph.y[test] = graph.y[test].flip(0)
        return graph

    split = data.split(load(GRAPH).y, 5, 5, 0)
    monkeypatch.setattr(data, "load", with_false_labels)
    # The split is a function of the labels, so it is held as it was.
    monkeypatch.setattr(data, "split", lambda *arguments, **options: split)
    start(tmp_path / "run").train()
    for name in ("model.safetensors", "metrics.jsonl", "predictions.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (unbroken / name).read_bytes()
    results = [json.loads((path / "result.json").read_text()) for path in (tmp_path / "run", unbroken)]
    assert results[0]["test_accuracy"] != results[1]["test_accuracy"]


def test_the_split_that_came_with_the_graph_is_used(tmp_path):
    graph = data.load(GRAPH)
    for name, mask in data.split_fractions(graph.y, 0.2, 0.2, seed=1).masks(90).items():
        graph[name] = mask
    data.save(graph, tmp_path / "graph.npz")
    values = {key: value for key, value in SMALL.items() if "labels" not in key} | {
        "dataset": str(tmp_path / "graph.npz")
    }
    result = Run.start(TrainConfig.from_values(values), tmp_path / "run").train()
    assert result.labels_per_class is None
    assert TrainedRun(tmp_path / "run").evaluate().sizes["train"] == int(graph.train_mask.sum())


def test_files_of_a_finished_run_that_are_damaged_or_gone_are_written_again(unbroken, tmp_path):
    start(tmp_path / "run").train()
    for name in ("model.safetensors", "predictions.csv", "result.json", "model.safetensors.sha256"):
        for damage in (lambda path: path.unlink(), lambda path: path.write_text("{")):
            damage(tmp_path / "run" / name)
            if name == "predictions.csv" and (tmp_path / "run" / name).exists():
                continue  # Nothing vouches for the content of a table.
            Run.resume(tmp_path / "run").train(lambda epoch, trainer: pytest.fail("an epoch was run"))
            assert contents(tmp_path / "run") == contents(unbroken)


def test_damaged_weights_are_noticed(unbroken, tmp_path):
    start(tmp_path / "run", epochs=1).train()
    path = tmp_path / "run" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"model\.safetensors: is damaged .*--resume"):
        TrainedRun(tmp_path / "run")


def test_a_loss_that_is_no_number_stops_the_run(tmp_path, monkeypatch):
    run = start(tmp_path / "run")
    run.save_every = 0
    epochs = []

    def spoil(epoch, trainer):
        epochs.append(epoch)
        if epoch.number == 4:
            with torch.no_grad():
                trainer.model.convs[-1].bias.fill_(float("nan"))

    with pytest.raises(
        DivergedError, match=r"became nan in epoch 5\. Try .*--lr.*checkpoint.safetensors.*best epoch"
    ) as error:
        run.train(spoil)
    assert TrainedRun(tmp_path / "run").evaluate().accuracy["train"] > 0
    assert error.value.exit_code == 3
    assert len(epochs) == 4
    weights = read_tensors(run.directory.previous_checkpoint)[0]
    assert all(np.isfinite(weight).all() for name, weight in weights.items() if name.startswith("model."))


def test_a_too_large_learning_rate_is_told(tmp_path):
    with pytest.raises(DivergedError, match="in epoch"):
        start(
            tmp_path / "run", lr=1e3, weight_decay=1e3, epochs=200, patience=200, feature_norm="none", preset="paper"
        ).train()
    weights = read_tensors(tmp_path / "run" / "checkpoint.safetensors")[0]
    assert all(np.isfinite(weight).all() for name, weight in weights.items() if name.startswith("model."))


@pytest.mark.posix
def test_a_full_disk_is_told_and_keeps_the_checkpoint(tmp_path):
    run = start(tmp_path / "run")
    run.save_every = 0
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = {}

    def fill(epoch, trainer):
        if epoch.number == 3:
            kept["epochs"] = len(read_tensors(run.directory.checkpoint)[0]["history"])
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))

    try:
        with pytest.raises(WriteError, match=r"checkpoint.safetensors: cannot be written .*Make room"):
            run.train(fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(read_tensors(run.directory.checkpoint)[0]["history"]) == kept["epochs"] == 2
    assert not list((tmp_path / "run").glob(".*.part"))


def test_a_place_that_cannot_be_written_is_told_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("cagat.training.run.Problem.load", lambda config: pytest.fail("the graph was loaded"))
    with pytest.raises(WriteError, match=r"cannot be written .* another place"):
        start(tmp_path / "file" / "run").train()


def test_a_run_is_not_overwritten(unbroken):
    with pytest.raises(RunError, match=r"already holds a run.*--resume"):
        start(unbroken)


def test_two_trainings_do_not_share_a_directory(tmp_path):
    run = start(tmp_path / "run")
    with RunDirectory(tmp_path / "run").locked(), pytest.raises(InUseError, match="another process is at work"):
        run.train()


def test_a_failed_start_leaves_nothing_behind(tmp_path):
    with pytest.raises(DatasetError):
        start(tmp_path / "run", dataset=str(tmp_path / "nowhere")).train()
    with pytest.raises(CagatError, match="affinity"):
        start(tmp_path / "run", support="edges", affinity="full").train()
    assert not (tmp_path / "run").exists()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(RunError, match=r"there is no run to resume\. Start one"):
        Run.resume(tmp_path)
    with pytest.raises(RunError, match="there is no trained model"):
        TrainedRun(tmp_path)


@pytest.mark.parametrize(
    "change", [{"test_accuracy": "high"}, {"epochs": [3]}, {"seconds": None}, {"labels_per_class": {}}]
)
def test_a_result_whose_numbers_are_none_is_written_again(change, unbroken, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    whole = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(whole | change))
    assert Run.resume(run).train().test_accuracy == whole["test_accuracy"]
    assert json.loads((run / "result.json").read_text())["epochs"] == whole["epochs"]


def test_another_configuration_is_not_resumed(tmp_path):
    stop_at_once(start(tmp_path / "run"))
    before = (tmp_path / "run" / "config.yaml").read_bytes()
    run = Run.resume(tmp_path / "run", epochs=50)
    run.config = run.config.model_copy(update={"lr": 0.1})
    with pytest.raises(RunError, match=f"lr is 0.1 now, but was {TrainConfig.from_values({}).lr}"):
        run.train()
    assert (tmp_path / "run" / "config.yaml").read_bytes() == before


def weighted_graph(path: Path, change: str = "") -> None:
    graph = data.load(GRAPH)
    graph.edge_weight = torch.linspace(0.5, 2, graph.num_edges)
    if change == "feature":
        graph.x[3, 2] += 1
    elif change == "weight":
        graph.edge_weight[5] += 1
    elif change == "label":
        node = data.split(graph.y, 5, 5, 0).train[0]
        graph.y[node] = (graph.y[node] + 1) % 3
    data.save(graph, path)


@pytest.mark.parametrize("change", ["feature", "weight"])
def test_another_graph_is_neither_resumed_nor_evaluated(tmp_path, change):
    weighted_graph(tmp_path / "graph.npz")
    stop_at_once(start(tmp_path / "run", dataset=str(tmp_path / "graph.npz")))
    weighted_graph(tmp_path / "graph.npz", change)
    with pytest.raises(RunError, match="the graph is not the one"):
        Run.resume(tmp_path / "run").train()
    with pytest.raises(RunError, match="has other nodes, edges, features or labels than when"):
        TrainedRun(tmp_path / "run").evaluate()
    # But it can be labelled, as any other.
    TrainedRun(tmp_path / "run").predict(str(tmp_path / "graph.npz"))


def test_weights_of_edges_have_an_effect_or_are_told_of(tmp_path, caplog):
    caplog.set_level("INFO")
    weighted_graph(tmp_path / "graph.npz")
    found = {}
    for model in ("cagat", "gat"):
        for graph in (GRAPH, str(tmp_path / "graph.npz")):
            path = tmp_path / f"{model}-{len(found)}"
            start(path, model=model, dataset=graph, epochs=2).train()
            found[model, graph] = (path / "metrics.jsonl").read_text()
        assert ("which gat does not use" in caplog.text) == (model == "gat")
    assert found["cagat", GRAPH] != found["cagat", str(tmp_path / "graph.npz")]
    assert found["gat", GRAPH] == found["gat", str(tmp_path / "graph.npz")]


def test_a_run_cannot_be_shortened(unbroken):
    before = contents(unbroken)
    with pytest.raises(ConfigError, match="12 epochs are done already, but epochs=5 was asked for"):
        Run.resume(unbroken, epochs=5).train()
    assert contents(unbroken) == before
    with pytest.raises(ConfigError, match="patience is 100 and can only be raised"):
        Run.resume(unbroken, patience=5)


def test_files_of_others_are_not_overwritten(tmp_path):
    (tmp_path / "predictions.csv").write_text("mine")
    (tmp_path / ".thesis.part").write_text("mine")
    with pytest.raises(RunError, match=r"predictions.csv: already exists"):
        start(tmp_path)
    (tmp_path / "predictions.csv").unlink()
    start(tmp_path, epochs=1).train()
    assert (tmp_path / ".thesis.part").read_text() == "mine"


def test_two_runs_that_were_made_for_one_directory(unbroken, tmp_path):
    first, second = start(tmp_path / "run"), start(tmp_path / "run", seed=7)
    first.train()
    with pytest.raises(RunError, match="already holds a run"):
        second.train()
    assert contents(tmp_path / "run") == contents(unbroken)


def test_a_run_of_a_machine_with_a_gpu(tmp_path):
    stop_at_once(start(tmp_path / "run"))
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace("device: cpu", "device: gpu7"))
    with pytest.raises(ConfigError, match="There is no device 'gpu7'"):
        Run.resume(tmp_path / "run")


def test_random_numbers_of_the_caller_are_left_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    start(tmp_path / "run", epochs=1).train()
    assert torch.equal(torch.rand(3), expected)


def test_an_unfinished_run_does_not_look_at_test_labels(tmp_path):
    assert start(tmp_path / "run").train(should_stop=lambda: True).test_accuracy is None


def test_features_are_found_by_name(tmp_path, caplog):
    graph = data.load(GRAPH)
    graph.feature_names = [f"f{number}" for number in range(8)]
    data.save(graph, tmp_path / "graph.npz")
    start(tmp_path / "run", dataset=str(tmp_path / "graph.npz"), epochs=2).train()
    run = TrainedRun(tmp_path / "run")
    expected = run.predict().probabilities
    order = torch.randperm(8)
    graph.x = graph.x[:, order]
    graph.feature_names = [f"f{number}" for number in order.tolist()]
    data.save(graph, tmp_path / "other.npz")
    assert torch.allclose(run.predict(str(tmp_path / "other.npz")).probabilities, expected, atol=1e-6)
    # A feature that no node of the new graph has.
    keep = [place for place, name in enumerate(graph.feature_names) if name != "f3"]
    graph.x, graph.feature_names = graph.x[:, keep], [graph.feature_names[place] for place in keep]
    data.save(graph, tmp_path / "fewer.npz")
    assert run.predict(str(tmp_path / "fewer.npz")).probabilities.shape == expected.shape
    graph.feature_names = ["new", *graph.feature_names[1:]]
    data.save(graph, tmp_path / "unknown.npz")
    run.predict(str(tmp_path / "unknown.npz"))
    assert "1 of 7 features are ignored, because the model was trained without them: 'new'" in caplog.text


def test_tensorboard_gets_every_epoch_once(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    start(tmp_path / "run", tensorboard=True, epochs=6).train(should_stop=lambda: True)
    Run.resume(tmp_path / "run").train()
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss/val")] == [1, 2, 3, 4, 5, 6]


def test_training_and_evaluation_are_one_pass_each(tmp_path, monkeypatch):
    passes = []
    from cagat import CaGAT

    forward = CaGAT.forward
    monkeypatch.setattr(CaGAT, "forward", lambda self, *inputs: passes.append(self.training) or forward(self, *inputs))
    start(tmp_path / "run", epochs=3, objective="supervised").train()
    # Of every epoch one training pass and one for loss and accuracy together; at the end one for all the files.
    assert passes == [True, False] * 3 + [False]
    passes.clear()
    start(tmp_path / "agreeing", epochs=3, objective="consistent", samples=3).train()
    assert passes == [True, True, True, False] * 3 + [False]


def test_a_model_that_labels_at_the_end(tmp_path):
    values = {key: value for key, value in SMALL.items() if key != "heads"} | {"model": "dgi", "epochs": 6}
    result = Run.start(TrainConfig.from_values(values), tmp_path / "run").train()
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["val_accuracy"] for line in lines] == [None] * 6
    assert result.val_accuracy == TrainedRun(tmp_path / "run").evaluate().accuracy["val"] > 0.3
    # What is computed at the end is the same after an interruption, too.
    run = Run.start(TrainConfig.from_values(values), tmp_path / "other")
    stop_at_once(run)
    Run.resume(tmp_path / "other").train()
    assert contents(tmp_path / "other") == contents(tmp_path / "run")


def test_the_epochs_on_record_can_be_read_back(unbroken, tmp_path):
    metrics = [json.loads(line) for line in (unbroken / "metrics.jsonl").read_text().splitlines()]
    history = RunDirectory(unbroken).history()
    assert [epoch.number for epoch in history] == list(range(1, 13))
    assert [epoch.val_loss for epoch in history] == [line["val_loss"] for line in metrics]
    assert RunDirectory(tmp_path).history() == []


@pytest.mark.parametrize("damage", [b'{"epoch": 1, "lo', b"\xff\n", b"[]\n", b"{}\n", b"5\n"])
def test_damaged_metrics_are_told_and_mended(unbroken, tmp_path, damage):
    path = Path(shutil.copytree(unbroken, tmp_path / "run"))
    metrics = path / "metrics.jsonl"
    metrics.write_bytes(damage)
    with pytest.raises(RunError, match=r"metrics\.jsonl: is damaged\. .*cagat train --resume") as caught:
        RunDirectory(path).history()
    assert str(path) in str(caught.value)
    Run.resume(path).train()
    assert metrics.read_bytes() == (unbroken / "metrics.jsonl").read_bytes()
    assert len(RunDirectory(path).history()) == 12
