"""Weights that somebody else wrote, with the right sum."""

import hashlib
import json
import os
import shutil
import struct
from pathlib import Path

import pytest
import torch

from cagat import models
from cagat.errors import CagatError, DamagedFileError
from cagat.memory import OutOfMemoryError
from cagat.training.outputs import read_result
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.weights_file import Description, read_weights, weights_are_whole, write_weights

DESCRIPTION = Description("gcn", {"hidden": 4}, 5, ["a", "b"], None, "l1", "")


@pytest.fixture
def path(tmp_path) -> Path:
    write_weights(tmp_path / "model.safetensors", models.create("gcn", 5, 2, hidden=4), DESCRIPTION)
    return tmp_path / "model.safetensors"


def with_sum(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.with_name(path.name + ".sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  {path.name}\n")
    return path


def described_otherwise(path: Path, **changes) -> Path:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + length])
    head["__metadata__"]["cagat"] = json.dumps(json.loads(head["__metadata__"]["cagat"]) | changes)
    text = json.dumps(head).encode()
    return with_sum(path, struct.pack("<Q", len(text)) + text + content[8 + length :])


@pytest.mark.parametrize("name", models.names())
def test_weights_of_every_model_come_back(tmp_path, name):
    model, path = models.create(name, 5, 2), tmp_path / "model.safetensors"
    if name.startswith("labelprop"):
        model.nodes, model.classes = torch.tensor([3, 1, 2]), torch.tensor([0, 1, 1])
    write_weights(path, model, Description(name, {}, 5, ["a", "b"], None, "l1", ""))
    read, _ = read_weights(path)
    assert read.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(weight, model.state_dict()[key]) for key, weight in read.state_dict().items())
    assert weights_are_whole(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"in_channels": 10**7, "hyperparameters": {"hidden": 10**4}},
        {"in_channels": 10**9, "hyperparameters": {"hidden": 10**9}},
        {"model": "cagat", "hyperparameters": {"layers": 10**9, "hidden": 1}},
        {"model": "gat"},
        {"in_channels": "x"},
        {"classes": 5},
        {"classes": []},
        {"in_channels": float("inf")},
        {"hyperparameters": None},
        {"unknown": 1},
    ],
)
def test_a_model_that_the_tensors_are_not_of_is_never_made(path, changes, monkeypatch):
    described_otherwise(path, **changes)
    made = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, **kwargs: made.append(empty(*args, **kwargs)) or made[-1])
    with pytest.raises(DamagedFileError, match=r"(?s)model\.safetensors: holds no weights of cagat .*--resume"):
        read_weights(path)
    assert all(tensor.is_meta or tensor.numel() < 1000 for tensor in made)


def test_files_of_gigabytes_are_not_read(path):
    whole = path.read_bytes()
    with path.open("r+b") as stream:
        stream.truncate(2**40)  # A hole, which costs no disk.
    with pytest.raises(DamagedFileError, match=f"it has {2**40} bytes, but {len(whole)} by its head"):
        read_weights(path)
    assert not weights_are_whole(path)
    with path.open("r+b") as stream:
        stream.write(struct.pack("<Q", 2**39))
    with pytest.raises(DamagedFileError, match="its head says that it has"):
        read_weights(path)
    path.write_bytes(whole)
    with path.with_name("model.safetensors.sha256").open("r+b") as stream:
        stream.truncate(2**40)
    with pytest.raises(DamagedFileError, match=r"model\.safetensors\.sha256: cannot be read \(it is larger than"):
        read_weights(path)
    assert not weights_are_whole(path)


def test_a_head_of_which_gigabytes_would_be_made_is_not_parsed(path):
    head = b'{"a": [' + b"{}," * (3 * 2**20) + b"{}]}"
    with_sum(path, struct.pack("<Q", len(head)) + head)
    with pytest.raises(DamagedFileError, match=f"its head says that it has {len(head)} bytes"):
        read_weights(path)
    assert not weights_are_whole(path)


def test_more_than_fits_into_the_memory_is_refused(path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 100}))
    with pytest.raises(OutOfMemoryError, match=r"model\.safetensors: reading it would need"):
        read_weights(path)


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.sha256"])
def test_pipes_are_not_waited_for(path, name):
    path.with_name(name).unlink()
    os.mkfifo(path.with_name(name))
    with pytest.raises(DamagedFileError, match=rf"{name}: cannot be read \(it is no regular file\)"):
        read_weights(path)
    assert not weights_are_whole(path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "endless"])
def test_results_and_metrics_that_have_no_end_are_none(path, make):
    directory = RunDirectory(path.parent)
    for written in (directory.predictions, directory.curves):
        written.write_text("")
    make(directory.result)
    make(directory.metrics)
    assert read_result(directory) is None
    with pytest.raises(RunError, match=r"metrics\.jsonl: cannot be read \(it is no regular file\)"):
        directory.history()


def test_a_cut_file_names_itself(path):
    shutil.copy(path, path.with_name("copy"))
    for length in (0, 5, 100, len(path.read_bytes()) - 1):
        with_sum(path, path.with_name("copy").read_bytes()[:length])
        with pytest.raises(CagatError, match=r"model\.safetensors: .*--resume"):
            read_weights(path)
