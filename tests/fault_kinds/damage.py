"""Files that are damaged, or changed at random behind their checksums."""

import io
import json
import logging
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from unittest.mock import patch

import safetensors.numpy

from cagat import data
from cagat.data import loading, published
from cagat.errors import CagatError
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.config_file import read_config
from cagat.training.run_directory import RunDirectory
from cagat.training.trained_run import read_weights
from fault_kinds.fault import Fault, Outcome, Tries

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
SMALL = {
    "dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "heads": 2, "epochs": 6, "threads": 1,
    "baselines": False,
}  # fmt: skip
_MOST_SECONDS = 5.0


def damaged(damage: Callable[[bytes, random.Random], bytes]) -> Tries:
    """Tries a damage on each kind of file in turn."""

    def run(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
        files = _checksummed_files(folder)
        for path, use in [pair for _, pair in zip(range(tries), cycle(files.items()), strict=False)]:
            whole = path.read_bytes()
            path.write_bytes(damage(whole, draw))
            yield Outcome(path.name, use())
            path.write_bytes(whole)

    return run


def flip(content: bytes, draw: random.Random) -> bytes:
    """One bit is another."""
    changed = bytearray(content)
    changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(content: bytes, draw: random.Random) -> bytes:
    """The end is gone."""
    return content[: draw.randrange(len(content))]


def _checksummed_files(folder: Path) -> dict[Path, Callable[[], str]]:
    """The files, each with what uses it and says what was wrong with how the damage was noticed."""
    unbroken, broken = folder / "unbroken", folder / "broken"
    Run.start(TrainConfig.from_values(SMALL), unbroken).train()
    half = Run.start(TrainConfig.from_values(SMALL), broken)
    half.save_every, done = 0, []
    half.train(lambda epoch, trainer: done.append(epoch), lambda: len(done) == 4)
    npz, tensors, cora = (folder / name for name in ("graph.npz", "graph.safetensors", "cora.npz"))
    for path in (npz, tensors):
        data.save(data.load(GRAPH), path)
    shutil.copy(published.EMBEDDED / "cora.npz", cora)
    return {
        RunDirectory(broken).checkpoint: lambda: _wrong_resume(broken, unbroken),
        RunDirectory(unbroken).model: lambda: _not_refused(lambda: TrainedRun(unbroken), "cagat train --resume"),
        npz: lambda: _not_refused(lambda: data.load(npz), "graph.npz.*again"),
        tensors: lambda: _not_refused(lambda: data.load(tensors), "graph.safetensors.*again"),
        cora: lambda: _not_refused(lambda: _load_embedded(folder), "cora.npz.*install cagat again"),
    }


def _wrong_resume(broken: Path, unbroken: Path) -> str:
    """What is wrong with a run that goes on although its last checkpoint is damaged."""
    copy, told = broken.with_name("copy"), io.StringIO()
    logger, handler = logging.getLogger("cagat"), logging.StreamHandler(told)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(broken, copy)
    logger.addHandler(handler)
    try:
        Run.resume(copy).train()
    except CagatError as error:
        return f"the run does not go on: {error}"
    finally:
        logger.removeHandler(handler)
    if not re.search(r"checkpoint\.\w+: is damaged.*Going on from the one before it", told.getvalue(), re.DOTALL):
        return f"the damage was not named: {told.getvalue()!r}"
    same = RunDirectory(copy).model.read_bytes() == RunDirectory(unbroken).model.read_bytes()
    return "" if same else "the resumed run is not the unbroken one"


def _not_refused(use: Callable[[], object], pattern: str) -> str:
    try:
        use()
    except CagatError as error:
        return "" if re.search(pattern, str(error), re.DOTALL) else f"the message does not say {pattern!r}: {error}"
    return "loaded silently"


def _load_embedded(package: Path) -> object:
    """Load cora from a package that was just installed there."""
    with patch.object(published, "EMBEDDED", package), patch.object(loading, "EMBEDDED", package):
        # The machine's own directory may hold another cora, which would be taken first.
        return data.load("cora", package / "no data")


def changed_files(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Read files with a few bytes changed, cut out, doubled or put in; each reader in turn."""
    for _, (name, (content, read)) in zip(range(tries), cycle(_readers(folder).items()), strict=False):
        changed, started = _changed(content, draw), time.process_time()
        try:
            read(changed)
            wrong = ""
        except CagatError:
            wrong = ""
        except Exception as error:
            wrong = f"{type(error).__name__}: {error} for {changed[:2000]!r}"
        seconds = time.process_time() - started
        yield Outcome(
            name, wrong or (f"took {seconds:.0f} s for {changed[:2000]!r}" if seconds > _MOST_SECONDS else "")
        )


def _changed(content: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(content) + 1)
        end = min(len(content), start + draw.choice((0, 1, 2, 8, 64)))
        new = (b"", content[start:end] * 2, draw.randbytes(max(1, end - start)), b"\xff" * 8, b"-1", b"9" * 20)
        content = content[:start] + draw.choice(new) + content[end:] or b"\0"
    return content


def _readers(folder: Path) -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """For each reader a small valid content, and what puts a content into files and reads them."""
    graph = data.load("synthetic:nodes=12,degree=2,classes=2,features=3,seed=0")
    for name in ("g.npz", "g.safetensors"):
        data.save(graph, folder / name)
    Run.start(TrainConfig.from_values(SMALL), folder / "run").train()
    weights, described = read_tensors(folder / "run" / "model.safetensors")
    with zipfile.ZipFile(folder / "g.npz") as archive:
        arrays = {name: archive.read(name) for name in archive.namelist()}
    plain = safetensors.numpy.save(safetensors.numpy.load((folder / "g.safetensors").read_bytes()))
    tables = folder / "tables"
    tables.mkdir()

    def read_npz(content: bytes) -> object:
        members = dict(zip(arrays, content.split(b"\0-\0"), strict=False))
        # Without its comment, which is a checksum, the archive is of another program, and is read.
        with zipfile.ZipFile(folder / "g.npz", "w") as archive:
            for name, array in members.items():
                archive.writestr(name, array)
        return data.load(folder / "g.npz")

    def read_tables(content: bytes) -> object:
        for name, text in zip(("edges", "features", "labels"), content.split(b"\0"), strict=False):
            (tables / f"{name}.csv").write_bytes(text)
        return data.load(tables)

    def read_description(content: bytes) -> object:
        try:
            metadata = json.loads(content)
            write_tensors(folder / "w.safetensors", weights, metadata)
        except (ValueError, RecursionError):
            return None  # Nobody could write this file.
        return read_weights(folder / "w.safetensors")

    csvs = b"source,target\na,b\n\0node,x\na,1\nb,2\n\0node,label,split\na,0,train\nb,1,val\n"
    config = (folder / "run" / "config.yaml").read_bytes()
    return {
        ".npz": (b"\0-\0".join(arrays.values()), read_npz),
        ".safetensors": (plain, lambda content: data.load(_put(folder / "g.safetensors", content))),
        "tables": (csvs, read_tables),
        "config.yaml": (config, lambda content: _config(_put(folder / "c.yaml", content))),
        "weights": (json.dumps(described).encode(), read_description),
    }


def _put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _config(path: Path) -> TrainConfig:
    return TrainConfig.from_values(read_config(path))


_NOTICED = "detected and named; a checkpoint's predecessor is taken, and the run ends in the same bits"
DAMAGE = (
    Fault(
        "flips",
        "one random bit flipped in model.safetensors, checkpoint.safetensors, a graph (.npz, .safetensors, cora.npz)",
        _NOTICED,
        tries=1000,
        quick=100,
        run=damaged(flip),
    ),
    Fault("cuts", "the same files cut at a random length", _NOTICED, tries=200, quick=40, run=damaged(cut)),
    Fault(
        "changes",
        "random changes of graphs, tables, configurations and weights, behind their checksums",
        "read, or refused with a typed error; under 5 s",
        tries=3000,
        quick=600,
        run=changed_files,
    ),
)
