"""States that are whole, but not of this run."""

import io
import shutil
from pathlib import Path

import pytest
import torch

from cagat.errors import DamagedFileError
from cagat.files import WriteError
from cagat.training import Run, TrainConfig
from cagat.training.checkpoint import load_checkpoint, previous
from cagat.zip_seal import sealed

SMALL = {
    "dataset": "synthetic:nodes=60,degree=4,classes=3,features=8,seed=0", "labels": 5, "val_labels": 5, "hidden": 4,
    "heads": 2, "epochs": 4, "threads": 1, "preset": "paper",
}  # fmt: skip


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("run") / "unbroken"
    Run.start(TrainConfig.from_values(SMALL), path).train()
    return path


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run that was stopped after two epochs, with a checkpoint of each."""
    path = tmp_path_factory.mktemp("run") / "stopped"
    run, done = Run.start(TrainConfig.from_values(SMALL), path), []
    run.save_every = 0
    run.train(lambda epoch, trainer: done.append(epoch), lambda: len(done) == 2)
    return path


def changed(**changes):
    """What makes another state of a state; ``a__b=c`` sets the value of `b` in that of `a`."""

    def change(state):
        for names, value in changes.items():
            *others, last = names.split("__")
            place = state
            for name in others:
                place = place[int(name) if name.isdigit() else name]
            place[last] = value
        return state

    return change


def doubled() -> list:
    """A list that holds the one before it twice, twenty times, so that a failure of the tests is no endless one."""
    made = []
    for _ in range(20):
        made = [made, made]
    return made


def endless(*shape: int) -> torch.Tensor:
    """A tensor with very many numbers that all are one."""
    return torch.zeros(1, dtype=torch.float64).expand(*shape)


FOREIGN = {
    "empty": lambda state: {},
    "a list": lambda state: [],
    "no configuration": changed(config=None),
    "configuration without form": changed(config=[]),
    "configuration of lists": changed(config__lr=doubled()),
    "configuration of a long text": changed(config__device="x" * 10_001),
    "no versions": changed(versions=None),
    "versions of lists": changed(versions__torch=doubled()),
    "no trainer": changed(trainer={}),
    "seconds": changed(seconds="x"),
    "endless seconds": changed(seconds=float("inf")),
    "no weights": changed(trainer__model={}),
    "other weights": changed(trainer__model={"a": torch.zeros(3)}),
    "other shapes": lambda state: changed(
        trainer__model={name: weight[..., :1] for name, weight in state["trainer"]["model"].items()}
    )(state),
    "best weights": changed(trainer__stopping__weights={"a": torch.zeros(3)}),
    "no best weights": changed(trainer__stopping__weights={}),
    "best epoch": changed(trainer__stopping__best_epoch=7),
    "best loss": changed(trainer__stopping__best_loss="low"),
    "waited": changed(trainer__stopping__waited=-10),
    "history of one dimension": changed(trainer__history=torch.ones(2, dtype=torch.float64)),
    "history of four columns": changed(trainer__history=torch.ones(2, 4, dtype=torch.float64)),
    "endless history": changed(trainer__history=endless(10**12, 3)),
    "random numbers": changed(trainer__random__cpu=torch.zeros(3, dtype=torch.uint8)),
    "random numbers of another type": changed(trainer__random__cpu="x"),
    "optimizer": changed(trainer__optimizer=None),
    "groups of the optimizer": changed(trainer__optimizer__param_groups=[]),
    "rate of the optimizer": changed(trainer__optimizer__param_groups__0__lr=1e9),
    "moments of other shapes": changed(trainer__optimizer__state__0__exp_avg=torch.zeros(3)),
    "endless moments": lambda state: changed(
        trainer__optimizer__state__0__exp_avg=endless(*state["trainer"]["optimizer"]["state"][0]["exp_avg"].shape)
    )(state),
    "moments of no weight": changed(trainer__optimizer__state={99: {}}),
    "what the model remembers": changed(trainer__training={"history": "x"}),
}


def put(path: Path, change) -> None:
    """Replace a checkpoint by another with the right seal."""
    buffer = io.BytesIO()
    torch.save(change(load_checkpoint(path)), buffer)
    path.write_bytes(sealed(buffer.getvalue()))


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_checkpoint_is_refused_and_the_one_before_it_taken(stopped, unbroken, tmp_path, name, caplog):
    run = Path(shutil.copytree(stopped, tmp_path / "run"))
    put(run / "checkpoint.pt", FOREIGN[name])
    alone = Path(shutil.copytree(run, tmp_path / "alone"))
    previous(alone / "checkpoint.pt").unlink()
    with pytest.raises(DamagedFileError, match=r"alone/checkpoint\.pt: is no checkpoint of"):
        Run.resume(alone).train()
    Run.resume(run).train()
    assert "run/checkpoint.pt: is no checkpoint of" in caplog.text
    assert "Going on from the one before it, checkpoint.previous.pt" in caplog.text
    assert (run / "model.safetensors").read_bytes() == (unbroken / "model.safetensors").read_bytes()


def test_a_foreign_checkpoint_does_not_take_the_place_of_the_good_one(stopped, unbroken, tmp_path, monkeypatch):
    run = Path(shutil.copytree(stopped, tmp_path / "run"))
    put(run / "checkpoint.pt", changed(trainer={}))

    def full(path, content):
        raise WriteError("the disk is full")

    monkeypatch.setattr("cagat.training.checkpoint.atomic_write", full)
    with pytest.raises(WriteError, match="the disk is full"):
        Run.resume(run).train()
    monkeypatch.undo()
    Run.resume(run).train()
    assert (run / "model.safetensors").read_bytes() == (unbroken / "model.safetensors").read_bytes()
