"""Checkpoints that are damaged, of another run, or of another version; and runs that are killed."""

import random
import shutil
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from cagat.errors import DamagedFileError
from cagat.files import WriteError
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.run_directory import RunError
from processes import CONTEXT

GRAPH = "synthetic:nodes=60,degree=4,classes=3,features=8,seed=0"
SMALL = {
    "dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "heads": 2, "epochs": 4, "threads": 1,
    "preset": "paper", "baselines": False,
}  # fmt: skip
COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv", "config.yaml")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("run") / "unbroken"
    Run.start(TrainConfig.from_values(SMALL), path).train()
    return contents(path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run that was stopped after two epochs, with a checkpoint of each."""
    path = tmp_path_factory.mktemp("run") / "stopped"
    run, done = Run.start(TrainConfig.from_values(SMALL), path), []
    run.save_every = 0
    run.train(lambda epoch, trainer: done.append(epoch), lambda: len(done) == 2)
    return path


@pytest.fixture
def run(stopped, tmp_path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in COMPARED}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)


def changed(tensors=None, without=(), **metadata):
    """Replace a checkpoint by another with the right checksum."""

    def change(path: Path) -> None:
        known, described = read_tensors(path)
        kept = {
            name: tensor for name, tensor in (known | (tensors or {})).items() if not name.startswith(tuple(without))
        }
        write_tensors(path, kept, described | metadata)

    return change


BAD = {
    "flipped": flip,
    "cut": cut,
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "without anything": lambda path: write_tensors(path, {}, {}),
    "no configuration": changed(config=None),
    "no weights": changed(without=("model.",)),
    "other weights": changed({"model.a": np.zeros(3)}),
    "no random numbers": changed(without=("random.",)),
    "other random numbers": changed({"random.cpu": np.zeros(3, dtype=np.uint8)}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_checkpoint_is_refused_and_the_one_before_it_taken(run, unbroken, name, caplog, monkeypatch):
    path = run / "checkpoint.safetensors"
    BAD[name](path)
    alone = Path(shutil.copytree(run, run.parent / "alone"))
    if path.exists():
        (alone / "checkpoint.previous.safetensors").unlink()
        with pytest.raises(DamagedFileError, match=r"alone/checkpoint\.safetensors: is (damaged|no checkpoint of)"):
            Run.resume(alone).train()

    def full(*arguments):
        raise WriteError("the disk is full")

    # The bad one does not take the place of the good one before it.
    with monkeypatch.context() as patched:
        patched.setattr("cagat.training.checkpoint.write_tensors", full)
        with pytest.raises(WriteError, match="the disk is full"):
            Run.resume(run).train()
    Run.resume(run).train()
    assert "run/checkpoint.safetensors: " in caplog.text
    assert "Going on from the one before it, checkpoint.previous.safetensors" in caplog.text
    assert contents(run) == unbroken


def test_damage_of_both_checkpoints_is_an_error(run):
    for path in run.glob("checkpoint*"):
        path.write_bytes(b"no")
    with pytest.raises(DamagedFileError, match=r"checkpoint.previous.safetensors: is damaged"):
        Run.resume(run).train()


def test_without_checkpoints_a_run_starts_from_the_beginning(run, unbroken, caplog):
    for path in run.glob("checkpoint*"):
        path.unlink()
    Run.resume(run).train()
    assert "starts from the beginning" in caplog.text
    assert contents(run) == unbroken


def test_a_run_that_got_further_than_its_checkpoint_resumes_to_the_same_bits(unbroken, tmp_path, monkeypatch):
    run = Run.start(TrainConfig.from_values(SMALL), tmp_path / "run")
    run.save_every = 0

    def die(epoch, trainer):
        # Nothing is saved any more, as if the machine had stood still before it was killed.
        monkeypatch.setattr("cagat.training.checkpoint.write_tensors", lambda *arguments: None)
        if epoch.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.train(die)
    monkeypatch.undo()
    assert len(run.directory.metrics.read_text().splitlines()) == 3
    Run.resume(tmp_path / "run").train()
    assert contents(tmp_path / "run") == unbroken


def test_a_run_of_an_older_version_is_refused_with_the_remedy(run):
    for path in run.glob("checkpoint*"):
        path.rename(path.with_suffix(".pt"))
    for use in (Run.resume, TrainedRun):
        with pytest.raises(
            RunError, match=r"checkpoint\.pt: is from an older version .* train --config .*config\.yaml"
        ):
            use(run)


def test_a_setting_that_an_earlier_version_did_not_have_is_said_to_be_that(run):
    path = run / "checkpoint.safetensors"
    tensors, found = read_tensors(path)
    del found["config"]["class_weight"]
    write_tensors(path, tensors, found)
    with pytest.raises(RunError, match=r"class_weight is 'auto' now.*started without it.*an earlier version of cagat"):
        Run.resume(run).train()


def train(path: Path, ready) -> None:
    sys.settrace(None)  # What a run does is measured in other tests, and this one waits for many.
    if (path / "config.yaml").exists():
        run = Run.resume(path)
    else:
        run = Run.start(TrainConfig.from_values(SMALL | {"epochs": 10}), path)
    # More often than in earnest, so that many kills fall into a save.
    run.save_every = 0
    ready.set()
    run.train()


@pytest.mark.timeout(300)
def test_killed_runs_resume_to_the_bits_of_an_unbroken_one(tmp_path):
    # `tools/faults.py` does the same to the command line, and more often.
    draw = random.Random(0)

    def process_for(path: Path) -> BaseProcess:
        ready = CONTEXT.Event()
        process = CONTEXT.Process(target=train, args=(path, ready))
        process.start()
        assert ready.wait(60)
        return process

    process_for(tmp_path / "warm-up").join()
    started = time.monotonic()
    process_for(tmp_path / "unbroken").join()
    length = time.monotonic() - started
    expected, kills, runs = contents(tmp_path / "unbroken"), 0, 0
    while kills < 5:
        runs += 1
        path = tmp_path / f"run-{runs}"
        while True:
            process = process_for(path)
            process.join(draw.uniform(0, 0.7 * length) if kills < 5 else None)
            if process.exitcode is not None:
                assert process.exitcode == 0
                break
            process.kill()
            process.join()
            kills += 1
        assert contents(path) == expected, f"after {kills} kills"
        assert not list(path.glob(".*.part"))
