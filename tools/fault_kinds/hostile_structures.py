"""Small files that say the same again and again, and so ask for years of work or much more memory than they have.

Each function makes the files of one attack in an empty directory and returns what reads them.
"""

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cagat import data
from cagat.training import Run, TrainConfig
from cagat.training.checkpoint import load_checkpoint
from cagat.training.run_directory import RunDirectory
from cagat.training.weights_file import read_weights
from cagat.zip_seal import sealed
from fault_kinds.attack import Reading, attacks

SMALL = {"dataset": "karate", "labels": 2, "val_labels": 2, "epochs": 2, "hidden": 2, "heads": 1, "threads": 1}
_TIMES = 40
# A tuple, and again and again one that names the one before it twice.
DOUBLED_TUPLE = b")" + b"".join(b"q%ch%c\x86" % (number, number) for number in range(_TIMES))


def doubled_list() -> list[Any]:
    """A list, and again and again one that holds the one before it twice."""
    made: list[Any] = []
    for _ in range(_TIMES):
        made = [made, made]
    return made


def _resumed(folder: Path, change: Callable[[dict[str, Any]], None]) -> Reading:
    """A run to be resumed, whose only checkpoint was changed and then sealed."""
    run = folder / "run"
    Run.start(TrainConfig.from_values(SMALL), run).train(should_stop=lambda: True)
    state, content = load_checkpoint(run / "checkpoint.pt"), io.BytesIO()
    change(state)
    torch.save(state, content)
    for path in run.glob("checkpoint*.pt"):
        path.unlink()
    (run / "checkpoint.pt").write_bytes(sealed(content.getvalue()))
    return lambda: Run.resume(run).train()


def checkpoint_with_a_doubled_list_as_rate(folder: Path) -> Reading:
    """The rate is not what it is now, and would be printed."""
    return _resumed(folder, lambda state: state["config"].update(lr=doubled_list()))


def checkpoint_with_a_doubled_list_as_version(folder: Path) -> Reading:
    """The version is not what it is now, and would be printed."""
    return _resumed(folder, lambda state: state["versions"].update(torch=doubled_list()))


def checkpoint_with_a_doubled_list_beside_the_trainer(folder: Path) -> Reading:
    """Nobody needs the list, but it would be searched for tensors before the history is looked at, which is none."""
    return _resumed(folder, lambda state: state["trainer"].update(more=doubled_list(), history=torch.ones(2)))


def _checkpoint(folder: Path, program: bytes) -> Reading:
    """A sealed checkpoint that holds just this program."""
    content, written = io.BytesIO(), io.BytesIO()
    torch.save({}, content)
    with zipfile.ZipFile(content) as small, zipfile.ZipFile(written, "w") as file:
        for member in small.infolist():
            is_program = member.filename.endswith("data.pkl")
            file.writestr(member.filename, b"\x80\x02" + program + b"." if is_program else small.read(member))
    path = folder / "checkpoint.pt"
    path.write_bytes(sealed(written.getvalue()))
    return lambda: load_checkpoint(path)


def checkpoint_with_a_doubled_tuple_as_key(folder: Path) -> Reading:
    """The key would be hashed by torch."""
    return _checkpoint(folder, b"}" + DOUBLED_TUPLE + b"K\x01s")


def checkpoint_that_makes_bytes(folder: Path) -> Reading:
    """Two gigabytes of zeros would be made by torch, to which that is not forbidden."""
    return _checkpoint(folder, b"}K\x01cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85Rs")


def weights_with_a_very_long_head(folder: Path) -> Reading:
    """A head of 34 megabytes, of which the parser would make more than a gigabyte."""
    head = b'{"__metadata__": {"cagat": "{}"}, "a": [' + b"{}," * (11 * 10**6) + b"{}]}"
    content = struct.pack("<Q", len(head)) + head
    path = folder / "model.safetensors"
    path.write_bytes(content)
    path.with_name("model.safetensors.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  model.safetensors\n")
    return lambda: read_weights(path)


def safetensors_with_a_very_long_head(folder: Path) -> Reading:
    """A graph with very many empty tensors."""
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    head = json.dumps({str(number): empty for number in range(10**6)}).encode()
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    return lambda: data.load(path)


def metrics_of_many_lines(folder: Path) -> Reading:
    """A record of very many epochs of which nothing is known."""
    directory = RunDirectory(folder)
    directory.metrics.write_bytes(b"\n" * 2**26)
    return directory.history


def metrics_of_one_line(folder: Path) -> Reading:
    """A record of one line, of which the parser would make more than a gigabyte."""
    directory = RunDirectory(folder)
    directory.metrics.write_bytes(b"[" + b"{}," * (2**26 // 3 - 2) + b"{}]")
    return directory.history


_NO_TUPLE = "a tuple is longer or deeper than those of"
STRUCTURES = attacks(
    (checkpoint_with_a_doubled_list_as_rate, "is no checkpoint of this run .*config holds a list"),
    (checkpoint_with_a_doubled_list_as_version, "is no checkpoint of this run .*versions holds a list"),
    (checkpoint_with_a_doubled_list_beside_the_trainer, "is no checkpoint of this run .*the history has type"),
    (checkpoint_with_a_doubled_tuple_as_key, f"is no checkpoint of cagat .*{_NO_TUPLE}"),
    (checkpoint_that_makes_bytes, "more than numbers and texts: GLOBAL builtins bytearray"),
    (weights_with_a_very_long_head, "its head says that it has"),
    (safetensors_with_a_very_long_head, "the header claims to have"),
    (metrics_of_many_lines, "metrics.jsonl: is damaged"),
    (metrics_of_one_line, "metrics.jsonl: is damaged"),
)
