import pytest
import torch

from cagat.distributed import World
from cagat.errors import ConfigError
from cagat.models import Labelled, create
from cagat.training import Run, TrainConfig
from cagat.training.make_trainer import choose_plan

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
SMALL = {
    "dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "threads": 1, "epochs": 4, "baselines": False
}  # fmt: skip


def plan(world=None, **values):
    config = TrainConfig.from_values(values)
    model = create(config.model, 3, 2, **config.hyperparameters())
    inputs = (torch.ones(6, 3), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), None)
    some = Labelled(torch.tensor([0, 5]), torch.tensor([0, 1]))
    return choose_plan(config, model, inputs, some, some, world or World())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"parts": 5}, "parts=5 has no meaning without --batching cluster"),
        ({"batching": "cluster", "hops": 2}, "hops=2 has no meaning without --batching khop"),
        ({"batching": "fanout"}, "batching must be one of cluster, khop"),
        ({"batching": "cluster", "batch_size": 5}, "has no batch_size"),
        ({"parallel": "data"}, "Add --batching cluster"),
        ({"parallel": "graph", "batching": "cluster"}, "Leave --batching out"),
        ({"parallel": "graph", "model": "gat"}, "but not gat. Use --batching cluster --parallel data"),
        ({"parallel": "graph", "support": "edges"}, "but not cagat with --support edges"),
        ({"batching": "cluster", "parts": 50}, "6 nodes cannot be cut into 50 parts"),
        ({"batching": "cluster", "model": "dgi"}, "dgi has a training of its own"),
        ({"batching": "khop", "model": "gcn"}, "how large neighbourhoods shall be with --hops"),
        ({"batching": "khop", "affinity": "full", "xi": 0.1}, "use --batching cluster"),
    ],
)
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        plan(**values)


def test_processes_without_a_word_on_how_are_refused():
    with pytest.raises(ConfigError, match=r"There are 2 processes, .* Add --parallel graph"):
        plan(World(0, 2))


def test_a_configuration_without_batches_is_what_it_was():
    assert not {"batching", "parts", "hops", "parallel"} & TrainConfig.from_values({}).values().keys()


@pytest.mark.parametrize(
    "batching",
    [{"batching": "cluster", "parts": 6, "parts_per_batch": 2}, {"batching": "khop", "hops": 2, "batch_size": 4}],
)
def test_batches_resume_to_the_bit(tmp_path, batching):
    config = TrainConfig.from_values({**SMALL, **batching})
    Run.start(config, tmp_path / "unbroken").train()
    stopped = Run.start(config, tmp_path / "resumed")
    assert stopped.train(should_stop=lambda: True).epochs == 1
    Run.resume(tmp_path / "resumed").train()
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (tmp_path / "unbroken" / name).read_bytes() == (tmp_path / "resumed" / name).read_bytes()


@pytest.mark.parametrize("parallel", [{"parallel": "graph"}, {"parallel": "data", "batching": "cluster", "parts": 6}])
def test_parallel_works_alone(tmp_path, parallel):
    result = Run.start(TrainConfig.from_values({**SMALL, **parallel}), tmp_path / "run").train()
    assert result.epochs == 4
    assert (tmp_path / "run" / "parallel.json").exists() == (parallel["parallel"] == "graph")


def test_other_models_take_batches(tmp_path):
    values = {**SMALL, "model": "gcn", "batching": "khop", "hops": 3}
    assert Run.start(TrainConfig.from_values(values), tmp_path / "run").train().epochs == 4
