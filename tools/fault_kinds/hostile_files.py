"""Files that somebody made to do harm, and what would read each of them.

Each function makes the files of one attack in an empty directory and returns what reads them. Where something could be
executed, it would write the file `executed` beside them.
"""

import io
import json
import os
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from cagat import data
from cagat.data.archive import npy
from cagat.data.array_pickle import read_array_pickle
from cagat.data.planetoid import read_planetoid
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.checkpoint import load_checkpoint
from cagat.training.config_file import read_config
from cagat.training.predictions import Predictions
from cagat.training.weights_file import read_weights
from cagat.zip_seal import sealed

Reading = Callable[[], object]
HUGE = 10**9


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def npy_bytes(descr: str, shape: tuple[int, ...], content: bytes) -> bytes:
    """An array as a file, whatever its header says."""
    head = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip archive with just these members."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def graph_members(**others: bytes) -> dict[str, bytes]:
    """The members of a graph of three nodes, some of them replaced."""
    arrays = {
        "adj_indices": np.array([1, 0, 2, 1]),
        "adj_indptr": np.array([0, 1, 3, 4]),
        "adj_shape": np.array([3, 3]),
        "labels": np.array([0, 1, -1]),
    }
    members = {}
    for key, array in arrays.items():
        buffer = io.BytesIO()
        npy.write_array(buffer, array)
        members[f"{key}.npy"] = buffer.getvalue()
    return members | {f"{key}.npy": content for key, content in others.items()}


def object_array_in_npz(folder: Path) -> Reading:
    """An array of objects, which only unpickling could read."""
    labels = npy_bytes("|O", (3,), pickle.dumps([Bomb(folder / "executed")] * 3))
    path = archive(folder / "g.npz", graph_members(labels=labels))
    return lambda: data.load(path)


def pickle_called_npz(folder: Path) -> Reading:
    """A pickle that is called .npz."""
    path = folder / "g.npz"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed")))
    return lambda: data.load(path)


def structured_array_in_npz(folder: Path) -> Reading:
    """An array of records, one field of which holds objects."""
    head = "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }"
    head += " " * (117 - len(head)) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + pickle.dumps(Bomb(folder / "executed"))
    path = archive(folder / "g.npz", graph_members(labels=content))
    return lambda: data.load(path)


def pickle_called_pt(folder: Path) -> Reading:
    """A pickle in the place of a checkpoint."""
    path = folder / "checkpoint.pt"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed")))
    return lambda: load_checkpoint(path)


def sealed_pt_with_code(folder: Path) -> Reading:
    """A checkpoint with code in it, and with the right seal."""
    buffer = io.BytesIO()
    torch.save({"trainer": Bomb(folder / "executed")}, buffer)
    path = folder / "checkpoint.pt"
    path.write_bytes(sealed(buffer.getvalue()))
    return lambda: load_checkpoint(path)


def planetoid_with_code(folder: Path) -> Reading:
    """A Planetoid file that calls a function."""
    path = folder / "ind.evil.allx"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed"), protocol=2))
    return lambda: read_array_pickle(path)


def planetoid_folder_with_code(folder: Path) -> Reading:
    """A whole Planetoid graph that calls functions."""
    for part in ("x", "y", "tx", "ty", "allx", "ally", "graph"):
        (folder / f"ind.evil.{part}").write_bytes(pickle.dumps(Bomb(folder / "executed"), protocol=2))
    (folder / "ind.evil.test.index").write_text("1\n")
    return lambda: read_planetoid(folder, "evil")


def planetoid_that_grows(folder: Path) -> Reading:
    """A pickle that doubles a list again and again by naming it twice."""
    path = folder / "ind.evil.graph"
    path.write_bytes(b"\x80\x02]q\x00" + b"(h\x00h\x00h\x00h\x00e" * 30_000 + b".")
    return lambda: read_array_pickle(path)


def zip_bomb(folder: Path) -> Reading:
    """A small archive that unpacks to gigabytes."""
    path = folder / "g.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in graph_members().items():
            file.writestr(name, content)
        with file.open("attr_matrix.npy", "w", force_zip64=True) as stream:
            stream.write(npy_bytes("<f4", (3, HUGE // 6), b""))
            for _ in range(2 * HUGE // 2**24):
                stream.write(bytes(2**24))
    return lambda: data.load(path)


def parquet_bomb(folder: Path) -> Reading:
    """A small Parquet file of very many equal rows."""
    path, rows = folder / "edges.parquet", 5_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["a"]))
    table = pa.table({"source": column, "target": column})
    with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(40):
            writer.write_table(table, row_group_size=rows)
    return lambda: data.load(folder)


def zip_slip(folder: Path) -> Reading:
    """An archive whose members would be unpacked elsewhere."""
    evil = {"../escaped.npy": b"x", f"{folder.parent}/escaped.npy": b"x", "../../adj_indptr.npy": b"x"}
    path = archive(folder / "g.npz", evil)
    return lambda: data.load(path)


def symlink_in_zip(folder: Path) -> Reading:
    """An archive whose member is a link to a file of the system."""
    path = folder / "g.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name, content in graph_members().items():
            file.writestr(name, content)
        link = zipfile.ZipInfo("attr_matrix.npy")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
    return lambda: data.load(path)


def symlink_as_output(folder: Path) -> Reading:
    """A run directory in which the files to be written are links to somebody else's."""
    victim = folder / "victim"
    victim.write_text("precious")
    run = folder / "run"
    run.mkdir()
    for name in ("metrics.jsonl", "checkpoint.pt", "model.safetensors", "predictions.csv"):
        (run / name).symlink_to(victim)
    config = TrainConfig.from_values({"dataset": "karate", "labels": 2, "val_labels": 2, "epochs": 1})
    return lambda: Run.start(config, run).train()


def symlink_as_lock(folder: Path) -> Reading:
    """A run directory whose lock is a link to somebody else's file."""
    victim = folder / "victim"
    victim.write_text("precious")
    run = folder / "run"
    run.mkdir()
    (run / ".lock").symlink_to(victim)
    config = TrainConfig.from_values({"dataset": "karate", "labels": 2, "val_labels": 2, "epochs": 1})
    return lambda: Run.start(config, run).train()


def huge_shape_in_npy(folder: Path) -> Reading:
    """An array that says it has very many numbers, and has eight."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (10**15,), bytes(64))))
    return lambda: data.load(path)


def overflowing_shape_in_npy(folder: Path) -> Reading:
    """An array whose size in bytes is 0 modulo 2**64."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (2**32, 2**32), bytes(64))))
    return lambda: data.load(path)


def negative_shape_in_npy(folder: Path) -> Reading:
    """An array of -1 numbers."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (-1,), bytes(64))))
    return lambda: data.load(path)


def huge_header_in_npy(folder: Path) -> Reading:
    """An array whose header is a very long expression."""
    head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (" + b"(" * 60_000 + b"), }\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(head), 65535)) + head
    path = archive(folder / "g.npz", graph_members(labels=content))
    return lambda: data.load(path)


def huge_sparse_shape(folder: Path) -> Reading:
    """Three sparse features, in a matrix of 10**15 columns, asked for as dense."""
    arrays = {"attr_indices": [0, 1, 2], "attr_indptr": [0, 1, 2, 3], "attr_shape": [3, 10**15]}
    others = {key: npy_bytes("<i8", (len(value),), np.array(value).tobytes()) for key, value in arrays.items()}
    path = archive(folder / "g.npz", graph_members(**others))
    return lambda: data.load(path)


def huge_adjacency_shape(folder: Path) -> Reading:
    """A graph that says it has 10**15 nodes."""
    path = archive(folder / "g.npz", graph_members(adj_shape=npy_bytes("<i8", (2,), np.array([10**15] * 2).tobytes())))
    return lambda: data.load(path)


def huge_shape_in_safetensors(folder: Path) -> Reading:
    """A tensor that says it has very many numbers."""
    head = json.dumps({"labels": {"dtype": "I64", "shape": [10**15], "data_offsets": [0, 64]}}).encode()
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(64))
    return lambda: data.load(path)


def huge_head_in_safetensors(folder: Path) -> Reading:
    """A head that says it has very many bytes."""
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", 2**62) + bytes(64))
    return lambda: data.load(path)


def weights_of_an_endless_model(folder: Path) -> Reading:
    """Weights whose description asks for a model of 10**9 units, with the right sum."""
    import hashlib

    described = {
        "model": "cagat", "hyperparameters": {"hidden": HUGE}, "in_channels": HUGE, "classes": ["a", "b"],
        "features": None, "feature_norm": "l1", "graph": "",
    }  # fmt: skip
    head = json.dumps({"__metadata__": {"cagat": json.dumps(described)}}).encode()
    content = struct.pack("<Q", len(head)) + head
    path = folder / "model.safetensors"
    path.write_bytes(content)
    path.with_name("model.safetensors.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  model.safetensors\n")
    return lambda: read_weights(path)


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
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    path = folder / "config.yaml"
    path.write_text("\n".join([*lines, "dataset: *a29"]))
    return lambda: TrainConfig.from_values(read_config(path))


def yaml_depth(folder: Path) -> Reading:
    """A configuration of very many brackets."""
    path = folder / "config.yaml"
    path.write_text("dataset: " + "[" * 100_000)
    return lambda: read_config(path)


def csv_with_a_long_field(folder: Path) -> Reading:
    """A table with a field of a billion characters."""
    path = folder / "edges.csv"
    path.write_text("source,target\na,")
    with path.open("r+b") as stream:
        # The system stores the zeros between as a hole, so that the file costs no disk.
        stream.truncate(HUGE)
    return lambda: data.load(folder)


def csv_with_a_long_header(folder: Path) -> Reading:
    """A table whose first line has a billion characters."""
    path = folder / "edges.csv"
    with path.open("wb") as stream:
        stream.truncate(HUGE)
    return lambda: data.load(folder)


def csv_with_many_columns(folder: Path) -> Reading:
    """A table of a million columns."""
    (folder / "edges.csv").write_text("source,target\na,b\n")
    (folder / "features.csv").write_text("node" + ",x" * 1_000_000 + "\n")
    return lambda: data.load(folder)


def csv_with_an_open_quote(folder: Path) -> Reading:
    """A quote that never ends."""
    (folder / "edges.csv").write_text('source,target\na,"' + "b\n" * 10_000_000)
    return lambda: data.load(folder)


def formula_in_predictions(folder: Path) -> str:
    """Node and class names that a spreadsheet would compute; what is wrong with the table that is written."""
    risky = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "plain"]
    nodes, classes = risky, ["=HYPERLINK(1)", "b"]
    path = folder / "predictions.csv"
    Predictions(nodes, classes, torch.tensor([[0.9, 0.1]] * len(nodes)), [""] * len(nodes)).write(path)
    import csv

    with path.open(newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    computed = [cell for cell in cells if cell and cell[0] in "=+-@\t\r" and cell not in ("-1",)]
    return f"a spreadsheet would compute {computed}" if computed else ""


READ: dict[str, Callable[[Path], Reading]] = {
    function.__name__.replace("_", " "): function
    for function in (
        object_array_in_npz, pickle_called_npz, structured_array_in_npz, pickle_called_pt, sealed_pt_with_code,
        planetoid_with_code, planetoid_folder_with_code, planetoid_that_grows, zip_bomb, parquet_bomb, zip_slip,
        symlink_in_zip, symlink_as_output, symlink_as_lock, huge_shape_in_npy, overflowing_shape_in_npy,
        negative_shape_in_npy, huge_header_in_npy, huge_sparse_shape, huge_adjacency_shape, huge_shape_in_safetensors,
        huge_head_in_safetensors, weights_of_an_endless_model, yaml_tag, yaml_tag_in_a_run, yaml_laughs, yaml_depth,
        csv_with_a_long_field, csv_with_a_long_header, csv_with_many_columns, csv_with_an_open_quote,
    )
}  # fmt: skip
"""Every attack that must be refused."""
