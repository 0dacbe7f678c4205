"""Disks that are full and directories that may not be written, while a run saves."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from cagat.errors import DamagedFileError
from cagat.safetensors_file import read_tensors
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Ended, Forked, command

_MOST_SECONDS = 120.0
_ENDLESS = ("--threads", "1", "--epochs", "1000000", "--patience", "1000000")


def refused_saves(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Let a training run until it has a checkpoint, take the disk away, and see how it ends."""
    for number in range(tries):
        home = folder / f"home-{number}"
        home.mkdir()
        run, is_full = home / "run", number % 2 == 0
        process = command("train", "--dataset", "cora", *_ENDLESS, "--out", "run", folder=home, obeys=True)
        what = "disk full" if is_full else "permission denied"
        if not _has_checkpoint(run, process):
            yield Outcome(what, f"no checkpoint came: {process.wait(0).err}")
            continue
        time.sleep(draw.uniform(0, 3))
        if is_full:
            # No file may be written beyond this size: the system says EFBIG, as a full disk says ENOSPC.
            psutil.Process(process.process.pid).rlimit(psutil.RLIMIT_FSIZE, (draw.randrange(1, 100_000), -1))
        else:
            run.chmod(0o555)
        ended = process.wait(_MOST_SECONDS)
        run.chmod(0o755)
        yield Outcome(what, _wrong(run, ended) or _cannot_go_on(run))


def _has_checkpoint(run: Path, process: Forked) -> bool:
    deadline = time.monotonic() + _MOST_SECONDS
    while process.process.exitcode is None and time.monotonic() < deadline:
        if (run / "checkpoint.safetensors").exists():
            return True
        time.sleep(0.01)
    return False


def _wrong(run: Path, ended: Ended) -> str:
    if ended.code in (0, None) or ended.traceback:
        return f"exit code {ended.code}: {ended.err}"
    if "cannot be written" not in ended.err:
        return f"the reason was not told: {ended.err}"
    try:
        read_tensors(run / "checkpoint.safetensors")
    except DamagedFileError as error:
        return f"the checkpoint is lost: {error}"
    left = [path.name for path in run.glob(".*.part")]
    return f"left behind: {left}" if left else ""


def _cannot_go_on(run: Path) -> str:
    """Why the run does not go on from its checkpoint, now that there is room."""
    done = len(read_tensors(run / "checkpoint.safetensors")[0]["history"])
    resumed = command("train", "--resume", run.name, "--epochs", str(done + 2), folder=run.parent).wait(_MOST_SECONDS)
    if resumed.code != 0:
        return f"the run does not go on: exit code {resumed.code}, {resumed.err}"
    epochs = len((run / "metrics.jsonl").read_text().splitlines())
    return "" if epochs == done + 2 else f"the run went on for {epochs} epochs, not {done + 2}"


DISK = Fault(
    "disk",
    "disk full (RLIMIT_FSIZE) and permission denied during a save",
    "previous checkpoint intact and resumed from, the error told, exit code not 0",
    tries=40,
    quick=2,
    run=refused_saves,
)
