"""Weights, and files of them that somebody else wrote, with the right checksum."""

import hashlib
import os

import pytest
import torch

from cagat import models
from cagat.errors import DamagedFileError
from cagat.memory import OutOfMemoryError
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.training.outputs import read_result
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trained_run import Description, read_weights, write_weights

DESCRIPTION = Description("gcn", {"hidden": 4}, 5, ["a", "b"], None, "l1", "")


@pytest.fixture
def path(tmp_path):
    write_weights(tmp_path / "model.safetensors", models.create("gcn", 5, 2, hidden=4), DESCRIPTION)
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("name", models.names())
def test_weights_of_every_model_come_back(tmp_path, name):
    model, path = models.create(name, 5, 2), tmp_path / "model.safetensors"
    if name.startswith("labelprop"):
        model.nodes, model.classes = torch.tensor([3, 1, 2]), torch.tensor([0, 1, 1])
    description = Description(name, {}, 5, ["a", "b"], ["=x", "\ud800"], "l1", "")
    write_weights(path, model, description)
    random = torch.get_rng_state()
    read, described = read_weights(path)
    assert described == description
    assert read.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(weight, model.state_dict()[key]) for key, weight in read.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (tmp_path / "model.safetensors.sha256").read_text() == f"{digest}  model.safetensors\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"in_channels": 10**7, "hyperparameters": {"hidden": 10**4}},
        {"in_channels": 10**9, "hyperparameters": {"hidden": 10**9}},
        {"model": "cagat", "hyperparameters": {"layers": 10**9, "hidden": 1}},
        {"model": "gat"},
        {"in_channels": "x"},
        {"classes": []},
        {"hyperparameters": None},
        {"unknown": 1},
    ],
)
def test_a_model_that_the_tensors_are_not_of_is_never_made(path, changes, monkeypatch):
    tensors, metadata = read_tensors(path)
    write_tensors(path, tensors, metadata | changes)
    made, empty = [], torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, **kwargs: made.append(empty(*args, **kwargs)) or made[-1])
    with pytest.raises(DamagedFileError, match=r"(?s)model\.safetensors: holds no weights of cagat .*--resume"):
        read_weights(path)
    assert all(tensor.is_meta or tensor.numel() < 1000 for tensor in made)


def test_damage_names_file_and_remedy(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"model\.safetensors: is damaged .*--resume"):
        read_weights(path)


def test_more_than_fits_into_the_memory_is_refused(path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 100}))
    with pytest.raises(OutOfMemoryError, match=r"model\.safetensors: reading it would need"):
        read_weights(path)


@pytest.mark.posix
@pytest.mark.parametrize(
    "make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "endless"]
)
def test_results_and_metrics_that_have_no_end_are_none(path, make):
    directory = RunDirectory(path.parent)
    for written in (directory.predictions, directory.curves):
        written.write_text("")
    make(directory.result)
    make(directory.metrics)
    assert read_result(directory) is None
    with pytest.raises(RunError, match=r"metrics\.jsonl: cannot be read \(it is no regular file\)"):
        directory.history()
