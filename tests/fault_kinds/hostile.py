"""Files that somebody made to do harm, each read in a process of its own that is watched."""

import csv
import hashlib
import json
import os
import pickle
import random
import re
import signal
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from cagat import data
from cagat.data.planetoid import read_array_pickle
from cagat.errors import CagatError
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.config_file import read_config
from cagat.training.predictions import Predictions
from cagat.training.run_directory import RunDirectory
from cagat.training.trained_run import read_weights
from fault_kinds.damage import SMALL
from fault_kinds.fault import Fault, Outcome
from fault_kinds.processes import Forked

HUGE = 10**9
MOST_SECONDS = 5.0
MOST_BYTES = 2**30
MAY_BE_READ = None
"""In the place of the error that must come: the files may be read, if only nothing else happens."""

Reading = Callable[[], object]


class _Bomb:
    """Writes a file when it is unpickled: `executed`, beside the files of the attack."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "executed"

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def _put(path: Path, content: bytes | str, read: Callable[[Path], object], size: int | None = None) -> Reading:
    """A file with this content, perhaps extended by a hole to this size, which costs no disk; what reads it."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if size is not None:
        os.truncate(path, size)
    return lambda: read(path)


def _npy(descr: str, shape: tuple[int, ...], content: bytes = bytes(64)) -> bytes:
    """An array as a file, whatever its header says."""
    head = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


def _integers(*values: int) -> bytes:
    return _npy("<i8", (len(values),), np.array(values).tobytes())


def _npz(folder: Path, members: dict[str, bytes] | None = None, **others: bytes) -> Reading:
    """A graph of three nodes with some of its arrays replaced, and further members."""
    arrays = {"adj_indices": (1, 0, 2, 1), "adj_indptr": (0, 1, 3, 4), "adj_shape": (3, 3), "labels": (0, 1, -1)}
    with zipfile.ZipFile(folder / "g.npz", "w") as file:
        for key in arrays | others:
            file.writestr(f"{key}.npy", others.get(key) or _integers(*arrays[key]))
        for name, content in (members or {}).items():
            file.writestr(name, content)
    return lambda: data.load(folder / "g.npz")


def _zip_bomb(folder: Path) -> Reading:
    """A small archive that unpacks to two gigabytes: a block of zeros, packed once and repeated."""
    zeros, count = bytes(2**24), 120
    head = _npy("<f4", (3, count * len(zeros) // 12), b"")
    packer, read = zlib.compressobj(9, wbits=-15), _npz(folder)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(folder / "g.npz", "a") as file:
        member = zipfile.ZipInfo("attr_matrix.npy")
        file.writestr(member, start + count * block + packer.flush())
        # It was written as it is; now the archive's directory says what it is.
        member.compress_type, member.file_size = zipfile.ZIP_DEFLATED, len(head) + count * len(zeros)
    return read


def _zip_slip(folder: Path) -> Reading:
    """Members that would be unpacked elsewhere."""
    names = ("../escaped.npy", "../../escaped.npy", f"{folder.parent}/absolute.npy", "../../adj_indptr.npy")
    data.load("karate")  # So that what reading a graph imports is not counted.
    return _npz(folder, dict.fromkeys(names, b"x"))


def _parquet_bomb(folder: Path) -> Reading:
    """A small Parquet file of very many equal rows."""
    rows = 5_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["a"]))
    table = pa.table({"source": column, "target": column})
    with pyarrow.parquet.ParquetWriter(folder / "edges.parquet", table.schema) as writer:
        for _ in range(16):
            writer.write_table(table, row_group_size=rows)
    return lambda: data.load(folder)


def _many_columns(folder: Path) -> Reading:
    count = 1_000_000
    (folder / "edges.csv").write_text("source,target\na,b\n")
    (folder / "features.csv").write_text(f"node{''.join(f',x{number}' for number in range(count))}\na{',1' * count}\n")
    return lambda: data.load(folder)


def _long_line(folder: Path) -> Reading:
    _put(folder / "edges.csv", "source,target\na,", data.load, HUGE)
    return lambda: data.load(folder)


def _tensors(folder: Path, length: int | None, content: bytes) -> Reading:
    """A .safetensors graph with this header, of which it says that it has this length."""
    return _put(folder / "g.safetensors", struct.pack("<Q", length or len(content)) + content + bytes(64), data.load)


def _weights(folder: Path, in_channels: int, **hyperparameters: object) -> Reading:
    """Weights without any tensor, with the right checksum, that describe this model."""
    described = {"model": "cagat", "hyperparameters": hyperparameters, "in_channels": in_channels, "graph": ""}
    described |= {"classes": ["a", "b"], "features": None, "feature_norm": "l1"}
    write_tensors(folder / "model.safetensors", {}, described)
    return lambda: read_weights(folder / "model.safetensors")


def _empty_checkpoint(folder: Path) -> Reading:
    """A run whose only checkpoint is whole, but empty."""
    run = RunDirectory(folder / "run")
    Run.start(TrainConfig.from_values(SMALL), run.path).train(should_stop=lambda: True)
    for path in run.path.glob("checkpoint*"):
        path.unlink()
    write_tensors(run.checkpoint, {}, {})
    return lambda: Run.resume(run.path).train()


def _links(folder: Path, *names: str) -> Reading:
    """A run directory in which the files to be written are links to somebody else's."""
    run = folder / "run"
    run.mkdir()
    (folder / "victim").write_text("precious")
    for name in names:
        (run / name).symlink_to(folder / "victim")
    return lambda: Run.start(TrainConfig.from_values(SMALL), run).train()


def _pipe(path: Path, read: Callable[[Path], object]) -> Reading:
    """A file that never begins."""
    os.mkfifo(path)
    return lambda: read(path)


def _yaml(folder: Path, text: str, size: int | None = None) -> Reading:
    return _put(folder / "config.yaml", text, lambda path: TrainConfig.from_values(read_config(path)), size)


def _tagged_run(folder: Path) -> Reading:
    """A run directory whose configuration calls a function."""
    _yaml(folder, _TAG)
    (folder / "model.safetensors").touch()
    return lambda: TrainedRun(folder)


def _formulas(folder: Path) -> Reading:
    """Node and class names that a spreadsheet would compute, written as predictions."""
    nodes = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "plain"]
    made = Predictions(nodes, ["=HYPERLINK(1)", "b"], torch.tensor([[0.9, 0.1]] * len(nodes)), [""] * len(nodes))
    made.write(folder / "predictions.csv")
    with (folder / "predictions.csv").open(newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row if cell != "-1"]
    computed = [cell for cell in cells if cell[:1] in tuple("=+-@\t\r")]
    assert not computed, f"a spreadsheet would compute {computed}"
    return lambda: None


_TAG = "dataset: !!python/object/apply:os.system ['touch executed']\n"
_LAUGHS = "\n".join(
    ["dataset: &a0 [x, x, x]", *(f"d{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))]
)
_SHAPE = b'{"labels": {"dtype": "I64", "shape": [1000000000000000], "data_offsets": [0, 64]}}'
_SPARSE = {"attr_indices": _integers(0, 1, 2), "attr_indptr": _integers(0, 1, 2, 3), "attr_shape": _integers(3, 10**15)}
_GROWING = b"\x80\x02]q\x00" + b"(h\x00h\x00h\x00e" * 30_000 + b"."
_ARRAY = "labels.npy.: cannot be read|not a readable .npz"
_VALUES = "is not YAML with plain values"
ATTACKS: dict[str, tuple[Callable[[Path], Reading], str | None]] = {
    "object array": (lambda f: _npz(f, labels=_npy("|O", (3,), pickle.dumps([_Bomb(f)] * 3))), "would execute code"),
    "pickle called .npz": (lambda f: _put(f / "g.npz", pickle.dumps(_Bomb(f)), data.load), "is damaged or cut short"),
    "Planetoid with code": (
        lambda f: _put(f / "ind.evil.allx", pickle.dumps(_Bomb(f), protocol=2), read_array_pickle),
        "it names .*system, .* nothing was executed",
    ),
    "Planetoid that grows": (lambda f: _put(f / "ind.g.graph", _GROWING, read_array_pickle), "that is no array"),
    "zip bomb": (_zip_bomb, "would unpack to"),
    "Parquet bomb": (_parquet_bomb, "80000000 rows of 2 columns would unpack to"),
    "zip slip": (_zip_slip, MAY_BE_READ),
    "no characters": (lambda f: _npz(f, node_names=_npy("<U1", (3,), b"\xff" * 12)), "codes that are no characters"),
    "huge shape": (lambda f: _npz(f, labels=_npy("<i8", (10**15,))), _ARRAY),
    "overflowing shape": (lambda f: _npz(f, labels=_npy("<i8", (2**32, 2**32))), _ARRAY),
    "huge sparse shape": (lambda f: _npz(f, **_SPARSE), "3 x 1000000000000000 dense features would need"),
    "huge tensor": (lambda f: _tensors(f, None, _SHAPE), "invalid shape, data type, or offset"),
    "huge header": (lambda f: _tensors(f, 2**62, b""), "the header claims to have"),
    "long line in a CSV": (_long_line, "straddles two block boundaries"),
    "a million columns": (_many_columns, "has 1000001 columns"),
    "empty checkpoint": (_empty_checkpoint, "is no checkpoint of this run"),
    "checkpoint that is a pipe": (lambda f: _pipe(f / "checkpoint.safetensors", read_tensors), "no regular file"),
    "checkpoint of a terabyte": (lambda f: _put(f / "c.safetensors", b"", read_tensors, 2**40), "the header claims"),
    "outputs that are links": (lambda f: _links(f, "metrics.jsonl", "predictions.csv"), "jsonl: already exists"),
    "lock that is a link": (lambda f: _links(f, ".lock"), "cannot be written .*symbolic links"),
    "weights of gigabytes": (lambda f: _weights(f, 10**6, hidden=1000, heads=1), "Missing key"),
    "weights of 10**9 layers": (lambda f: _weights(f, 1, hidden=1, heads=1, layers=HUGE), "layers must be"),
    "YAML tag": (lambda f: _yaml(f, _TAG), "could not determine a constructor for the tag .*os.system"),
    "YAML tag in a run": (_tagged_run, "could not determine a constructor for the tag .*os.system"),
    "YAML laughs": (lambda f: _yaml(f, _LAUGHS), "aliases .* are not allowed"),
    "YAML depth": (lambda f: _yaml(f, "dataset: " + "[" * 40_000), "maximum recursion depth"),
    "YAML of a gigabyte": (lambda f: _yaml(f, "", HUGE), "larger than 50000 bytes"),
    "YAML that is a pipe": (lambda f: _pipe(f / "config.yaml", read_config), "no regular file"),
    "YAML without end": (lambda f: partial(read_config, Path("/dev/zero")), "no regular file"),
    "YAML date": (lambda f: _yaml(f, "seed: 2001-99-99\n"), _VALUES),
    "YAML tag of a type": (lambda f: _yaml(f, "seed: !!int abc\n"), _VALUES),
    "YAML number of 5000 digits": (lambda f: _yaml(f, f"seed: {'9' * 5000}\n"), _VALUES),
    "formulas in predictions": (_formulas, MAY_BE_READ),
}


def hostile_files(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Read each of the files."""
    for number, name in enumerate([*ATTACKS][:tries]):
        yield Outcome(name, attacked(name, folder / str(number)))


def attacked(name: str, watched: Path) -> str:
    """What is wrong with how the files of an attack are read; they are made deep in a new directory."""
    # So deep that also ../../../x would be noticed.
    home = watched / "outer" / "middle" / "target"
    home.mkdir(parents=True)
    ended = Forked(_attempt, name, home, watched, folder=home).wait(120)
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.err}"
    return wrong_reading(ATTACKS[name][1], json.loads(ended.out.splitlines()[-1]), _files(watched))


def _attempt(name: str, home: Path, watched: Path) -> None:
    """Make the files, then read them; print what came of it, the time and the most memory there was."""
    read = ATTACKS[name][0](home)
    made = _files(watched)
    Path("/proc/self/clear_refs").write_text("5")  # The peak of memory begins anew.
    signal.signal(signal.SIGALRM, _waited_too_long)
    signal.alarm(30)
    started, worked, wrong, told = _seconds_not_waiting(), time.process_time(), "", None
    try:
        read()
    except CagatError as error:
        told = str(error)
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"
    signal.alarm(0)
    seconds = max(_seconds_not_waiting() - started, time.process_time() - worked)
    peak = 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    print()
    print(json.dumps({"wrong": wrong, "told": told, "seconds": seconds, "bytes": peak, "made": made}))


def _waited_too_long(*_: object) -> None:
    raise SystemExit("not done after 30 s")


def _seconds_not_waiting() -> float:
    """The time of the clock, without that in which others had the processor: on a busy machine they would decide."""
    return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def _files(watched: Path) -> dict[str, str]:
    """All that is in the directory, with what each is and holds; of large files, their size."""
    found = {}
    for path in watched.rglob("*"):
        known = path.lstat()
        what = f"{stat.filemode(known.st_mode)} {path.readlink() if path.is_symlink() else ''}"
        if stat.S_ISREG(known.st_mode):
            small = known.st_size < 2**24
            what += hashlib.sha256(path.read_bytes()).hexdigest() if small else str(known.st_size)
        if path.suffix != ".lock" and path.name != ".lock":
            found[str(path.relative_to(watched))] = what
    return found


def wrong_reading(pattern: str | None, found: dict[str, Any], files: dict[str, str]) -> str:
    """What was wrong with the reading of hostile files."""
    if found["wrong"]:
        return str(found["wrong"])
    if pattern is not MAY_BE_READ:
        if found["told"] is None:
            return "it was read"
        if not re.search(pattern, found["told"], re.DOTALL):
            return f"refused for another reason than {pattern!r}: {found['told']}"
    if found["seconds"] > MOST_SECONDS or found["bytes"] > MOST_BYTES:
        return f"took {found['seconds']:.1f} s and {found['bytes'] / 2**20:.0f} MiB"
    return "" if files == found["made"] else f"files changed: {sorted(set(files.items()) ^ set(found['made'].items()))}"


HOSTILE = Fault(
    "hostile",
    "hostile files: pickles, object arrays, zip bombs, zip slip, links, huge shapes, YAML tags, long CSV, formulas",
    "refused with a typed error under 5 s and 1 GiB; nothing executed, nothing written elsewhere",
    tries=len(ATTACKS),
    quick=len(ATTACKS),
    run=hostile_files,
)
