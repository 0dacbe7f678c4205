"""Configurations, checkpoints, weights and run directories that somebody made to do harm.

Each function makes the files of one attack in an empty directory and returns what reads them.
"""

import csv
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from cagat.safetensors_file import read_tensors, write_tensors
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.config_file import read_config
from cagat.training.predictions import Predictions
from cagat.training.weights_file import read_weights
from fault_kinds.attack import HUGE, Attack, Bomb, Reading, attacks

SMALL = {"dataset": "karate", "labels": 2, "val_labels": 2, "epochs": 2, "hidden": 2, "heads": 1, "threads": 1}
_WRONG_VALUES = (
    "2001-99-99", "0x_", "0b_", "!!int abc", "!!float x", "!!bool maybe", "!!timestamp abc", "!!map [a]", "9" * 5000,
)  # fmt: skip


def _hole(path: Path, size: int, read: Callable[[Path], object]) -> Reading:
    """A file that is very large, but stored as a hole, so that it costs no disk."""
    with path.open("ab") as stream:
        stream.truncate(size)
    return lambda: read(path)


def _weights(folder: Path, hyperparameters: dict[str, object], in_channels: int) -> Reading:
    """Weights without any tensor, with a description and the right sum."""
    described = {
        "model": "cagat", "hyperparameters": hyperparameters, "in_channels": in_channels, "classes": ["a", "b"],
        "features": None, "feature_norm": "l1", "graph": "",
    }  # fmt: skip
    path = folder / "model.safetensors"
    write_tensors(path, {}, described)
    return lambda: read_weights(path)


def pickle_as_checkpoint(folder: Path) -> Reading:
    """A pickle in the place of a checkpoint."""
    path = folder / "checkpoint.safetensors"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed")))
    return lambda: read_tensors(path)


def checkpoint_of_somebody_else(folder: Path) -> Reading:
    """A run whose checkpoint is whole and sealed, but empty, and the only one."""
    run = folder / "run"
    Run.start(TrainConfig.from_values(SMALL), run).train(should_stop=lambda: True)
    for path in run.glob("checkpoint*"):
        path.unlink()
    write_tensors(run / "checkpoint.safetensors", {}, {})
    return lambda: Run.resume(run).train()


def checkpoint_that_is_a_pipe(folder: Path) -> Reading:
    """A checkpoint that never begins."""
    os.mkfifo(folder / "checkpoint.safetensors")
    return lambda: read_tensors(folder / "checkpoint.safetensors")


def checkpoint_of_a_terabyte(folder: Path) -> Reading:
    """A very large checkpoint."""
    return _hole(folder / "checkpoint.safetensors", 2**40, read_tensors)


def symlink_as_output(folder: Path) -> Reading:
    """A run directory in which the files to be written are links to somebody else's."""
    victim = folder / "victim"
    victim.write_text("precious")
    run = folder / "run"
    run.mkdir()
    for name in ("metrics.jsonl", "checkpoint.safetensors", "model.safetensors", "predictions.csv"):
        (run / name).symlink_to(victim)
    return lambda: Run.start(TrainConfig.from_values(SMALL), run).train()


def symlink_as_lock(folder: Path) -> Reading:
    """A run directory whose lock is a link to somebody else's file."""
    victim = folder / "victim"
    victim.write_text("precious")
    run = folder / "run"
    run.mkdir()
    (run / ".lock").symlink_to(victim)
    return lambda: Run.start(TrainConfig.from_values(SMALL), run).train()


def weights_of_an_endless_model(folder: Path) -> Reading:
    """Weights whose description asks for a model of 10**9 units, with the right sum."""
    return _weights(folder, {"hidden": HUGE}, HUGE)


def weights_of_a_model_of_gigabytes(folder: Path) -> Reading:
    """Weights whose description asks for a model that would fit into the memory, and that take a kilobyte."""
    return _weights(folder, {"hidden": 1000, "heads": 1}, 10**6)


def weights_of_a_model_of_very_many_layers(folder: Path) -> Reading:
    """Weights whose description asks for so many layers that to count them would take hours."""
    return _weights(folder, {"hidden": 1, "heads": 1, "layers": HUGE}, 1)


def weights_of_a_terabyte(folder: Path) -> Reading:
    """A very large file of weights."""
    _weights(folder, {"hidden": 1}, 1)
    return _hole(folder / "model.safetensors", 2**40, read_weights)


def weights_that_are_a_pipe(folder: Path) -> Reading:
    """Weights that never begin."""
    read = _weights(folder, {"hidden": 1}, 1)
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")
    return read


def yaml_tag(folder: Path) -> Reading:
    """A configuration that calls a function."""
    path = folder / "config.yaml"
    path.write_text(f"dataset: !!python/object/apply:os.system ['touch {folder / 'executed'}']\n")
    return lambda: read_config(path)


def yaml_tag_in_a_run(folder: Path) -> Reading:
    """A run directory whose configuration calls a function."""
    (folder / "config.yaml").write_text(f"!!python/object/new:os.system ['touch {folder / 'executed'}']\n")
    (folder / "model.safetensors").write_bytes(b"")
    return lambda: TrainedRun(folder)


def yaml_laughs(folder: Path) -> Reading:
    """A configuration that names itself so often that its text would fill the memory."""
    lines = ["dataset: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"data_dir: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    path = folder / "config.yaml"
    path.write_text("\n".join([*lines, "model: *a29"]))
    return lambda: TrainConfig.from_values(read_config(path))


def yaml_merges(folder: Path) -> Reading:
    """A configuration of a few lines whose merges take a gigabyte."""
    lines = ["seed: 1", "a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 9)]
    path = folder / "config.yaml"
    path.write_text("\n".join(lines))
    return lambda: read_config(path)


def yaml_value(value: str, folder: Path) -> Reading:
    """A configuration with a value that is not what its form or its tag says."""
    path = folder / "config.yaml"
    path.write_text(f"seed: {value}\n")
    return lambda: read_config(path)


def yaml_number_beyond_floats(folder: Path) -> Reading:
    """A learning rate of 400 digits."""
    path = folder / "config.yaml"
    path.write_text(f"lr: {'9' * 400}\n")
    return lambda: TrainConfig.from_values(read_config(path))


def yaml_path_with_a_zero(folder: Path) -> Reading:
    """A path that no system takes."""
    path = folder / "config.yaml"
    path.write_text('out: "a\\0b"\n')
    return lambda: read_config(path)


def yaml_path_of_half_characters(folder: Path) -> Reading:
    """A path that cannot be written."""
    path = folder / "config.yaml"
    path.write_text('dataset: "\\uD800"\n')
    return lambda: read_config(path)


def yaml_of_a_gigabyte(folder: Path) -> Reading:
    """A very large configuration."""
    return _hole(folder / "config.yaml", HUGE, read_config)


def yaml_that_is_a_pipe(folder: Path) -> Reading:
    """A configuration that never begins."""
    os.mkfifo(folder / "config.yaml")
    return lambda: read_config(folder / "config.yaml")


def yaml_without_end(folder: Path) -> Reading:
    """A configuration that never ends."""
    return lambda: read_config(Path("/dev/zero"))


def yaml_depth(folder: Path) -> Reading:
    """A configuration of very many brackets."""
    path = folder / "config.yaml"
    path.write_text("dataset: " + "[" * 40_000)
    return lambda: read_config(path)


def formula_in_predictions(folder: Path) -> str:
    """Node and class names that a spreadsheet would compute; what is wrong with the table that is written."""
    risky = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "plain"]
    nodes, classes = risky, ["=HYPERLINK(1)", "b"]
    path = folder / "predictions.csv"
    Predictions(nodes, classes, torch.tensor([[0.9, 0.1]] * len(nodes)), [""] * len(nodes)).write(path)
    with path.open(newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    computed = [cell for cell in cells if cell and cell[0] in "=+-@\t\r" and cell not in ("-1",)]
    return f"a spreadsheet would compute {computed}" if computed else ""


RUNS = attacks(
    (pickle_as_checkpoint, "checkpoint.safetensors: is damaged"),
    (checkpoint_of_somebody_else, "checkpoint.safetensors: is no checkpoint of this run .*KeyError"),
    (checkpoint_that_is_a_pipe, "checkpoint.safetensors: .* no regular file"),
    (checkpoint_of_a_terabyte, "checkpoint.safetensors: is damaged"),
    (symlink_as_output, "metrics.jsonl: is there already"),
    (symlink_as_lock, "cannot be written .*symbolic links"),
    (weights_of_an_endless_model, "Storage size calculation overflowed"),
    (weights_of_a_model_of_gigabytes, "its tensors are not those of the model"),
    (weights_of_a_model_of_very_many_layers, "says that the model has 1000000000 layers"),
    (weights_of_a_terabyte, "reading it would need 1 TiB"),
    (weights_that_are_a_pipe, "model.safetensors: .* no regular file"),
    (yaml_tag, "could not determine a constructor for the tag .*os.system"),
    (yaml_tag_in_a_run, "could not determine a constructor for the tag .*os.system"),
    (yaml_laughs, "aliases .* are not allowed"),
    (yaml_merges, "aliases .* are not allowed"),
    (yaml_depth, "maximum recursion depth"),
    (yaml_number_beyond_floats, "lr must be a number"),
    (yaml_path_with_a_zero, "must be valid text"),
    (yaml_path_of_half_characters, "must be valid text"),
    (yaml_of_a_gigabyte, "larger than 50000 bytes"),
    (yaml_that_is_a_pipe, "no regular file"),
    (yaml_without_end, "no regular file"),
) | {
    f"yaml value {value[:20]}": Attack(partial(yaml_value, value), "is not YAML with plain values")
    for value in _WRONG_VALUES
}
