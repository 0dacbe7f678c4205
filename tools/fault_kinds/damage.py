"""Files of a run and of graphs that are no longer what was written."""

import logging
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from cagat import data
from cagat.data import published
from cagat.errors import CagatError
from cagat.training import Run, TrainConfig, TrainedRun
from fault_kinds.fault import Fault, Outcome, Tries

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
SMALL = {"dataset": GRAPH, "labels": 5, "val_labels": 5, "hidden": 4, "heads": 2, "epochs": 8, "threads": 1}

Damage = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """A file to damage.

    Attributes:
        path: The file.
        use: Uses it, and says what was wrong with how the damage was noticed; nothing if all was right.
    """

    path: Path
    use: Callable[[], str]


class _Messages(logging.Handler):
    """Keeps what cagat logs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def damaged(damage: Damage) -> Tries:
    """Tries a damage on each of the targets in turn."""

    def run(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
        targets = _targets(folder)
        for number in range(tries):
            target = targets[number % len(targets)]
            whole = target.path.read_bytes()
            target.path.write_bytes(damage(whole, draw))
            wrong = target.use()
            target.path.write_bytes(whole)
            yield Outcome(target.path.name, wrong)

    return run


def flip(content: bytes, draw: random.Random) -> bytes:
    """One bit is another."""
    changed, place = bytearray(content), draw.randrange(len(content))
    changed[place] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(content: bytes, draw: random.Random) -> bytes:
    """The end is gone."""
    return content[: draw.randrange(len(content))]


def _targets(folder: Path) -> list[Target]:
    """A checkpoint, weights, and a graph in each form that says itself whether it is whole."""
    Run.start(TrainConfig.from_values(SMALL), folder / "unbroken").train()
    broken = Run.start(TrainConfig.from_values(SMALL), folder / "broken")
    broken.save_every, done = 0, []
    broken.train(lambda epoch, trainer: done.append(epoch), lambda: len(done) == 4)
    graph = data.load(GRAPH)
    for name in ("graph.npz", "graph.safetensors"):
        data.save(graph, folder / name)
    shutil.copy(published.EMBEDDED / "cora.npz", folder / "cora.npz")
    return [
        Target(folder / "broken" / "checkpoint.safetensors", lambda: _resumes_from_the_one_before(folder)),
        Target(folder / "unbroken" / "model.safetensors", lambda: _weights_are_refused(folder / "unbroken")),
        Target(folder / "graph.npz", lambda: _graph_is_refused(folder / "graph.npz")),
        Target(folder / "graph.safetensors", lambda: _graph_is_refused(folder / "graph.safetensors")),
        Target(folder / "cora.npz", lambda: _embedded_graph_is_refused(folder)),
    ]


def _resumes_from_the_one_before(folder: Path) -> str:
    copy, messages, logger = folder / "copy", _Messages(), logging.getLogger("cagat")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "broken", copy)
    logger.addHandler(messages)
    try:
        Run.resume(copy).train()
    except CagatError as error:
        return f"the run does not go on: {error}"
    finally:
        logger.removeHandler(messages)
    told = " ".join(messages.texts)
    if "checkpoint.safetensors: is damaged" not in told or "Going on from the one before it" not in told:
        return f"the damage was not told: {told!r}"
    same = (copy / "model.safetensors").read_bytes() == (folder / "unbroken" / "model.safetensors").read_bytes()
    return "" if same else "the resumed run is not the unbroken one"


def _weights_are_refused(run: Path) -> str:
    return _told(lambda: TrainedRun(run), "model.safetensors", "cagat train --resume")


def _graph_is_refused(path: Path) -> str:
    return _told(lambda: data.load(path), path.name, "again")


def _embedded_graph_is_refused(package: Path) -> str:
    """Load cora as who has just installed the package does, from there."""
    with patch.object(published, "EMBEDDED", package):
        # The machine's own directory may hold another cora, which would be taken first.
        return _told(lambda: data.load("cora", package / "no data"), "cora.npz", "install cagat again")


def _told(use: Callable[[], object], *words: str) -> str:
    try:
        use()
    except CagatError as error:
        missing = [word for word in words if word not in str(error)]
        return f"the message does not say {missing}: {error}" if missing else ""
    return "loaded silently"


_MUST = "detected and named; a checkpoint's predecessor is taken, and the run ends in the same bits"
FLIPS = Fault(
    "flips",
    "one random bit flipped in model.safetensors, checkpoint.safetensors, a graph (.npz, .safetensors, cora.npz)",
    _MUST,
    tries=1000,
    quick=100,
    run=damaged(flip),
)
CUTS = Fault("cuts", "the same files cut at a random length", _MUST, tries=200, quick=40, run=damaged(cut))
