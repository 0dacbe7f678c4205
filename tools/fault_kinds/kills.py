"""Trainings that are killed again and again, also in the middle of a save, and resumed."""

import hashlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Forked, command

COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv")
_MOST_KILLS_OF_A_RUN = 6


def digests(run: Path) -> dict[str, str]:
    """The sha256 of the files that must be the same."""
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in COMPARED}


def killed_runs(kills: int, draw: random.Random, folder: Path, epochs: int = 60) -> Iterator[Outcome]:
    """Kill trainings on Cora so many times in all; one outcome a kill, when the run that it hit has ended."""
    training = ["train", "--dataset", "cora", "--threads", "1", "--epochs", str(epochs)]
    for name in ("warm-up", "unbroken"):
        started = time.monotonic()
        ended = command(*training, "--out", name, folder=folder).wait()
        if ended.code != 0:
            yield Outcome("the unbroken run", f"exit code {ended.code}: {ended.err}")
            return
    length, wanted, done, runs = time.monotonic() - started, digests(folder / "unbroken"), 0, 0
    while done < kills:
        runs += 1
        run, ways = folder / f"run-{runs}", []
        while True:
            # A run that was killed before it had a configuration left nothing to resume, and starts again.
            arguments = (
                ["train", "--resume", run.name] if (run / "config.yaml").exists() else [*training, "--out", run.name]
            )
            process = command(*arguments, folder=folder)
            may_kill = done + len(ways) < kills and len(ways) < _MOST_KILLS_OF_A_RUN
            how = _killed(process, run, draw.uniform(0, 0.8 * length), draw.random() < 0.5) if may_kill else None
            if how is None:
                break
            ways.append(how)
        ended = process.wait()
        wrong = "" if ended.code == 0 and digests(run) == wanted else f"run {runs} is not the unbroken one: {ended.err}"
        for way in ways:
            yield Outcome(f"killed {way}", wrong)
        done += len(ways)


def _killed(process: Forked, run: Path, seconds: float, in_a_save: bool) -> str | None:
    """Kill a training after some seconds, or at the next save after them; how, or nothing if it ended before."""
    deadline = time.monotonic() + seconds
    while process.process.exitcode is None:
        if time.monotonic() > deadline and (not in_a_save or _is_saving(run)):
            how = "in a save" if _is_saving(run) else "between saves"
            process.kill()
            process.wait()
            return how
        time.sleep(0.0005)
    return None


def _is_saving(run: Path) -> bool:
    return any(run.glob(".checkpoint*.part"))


KILLS = Fault(
    "kills",
    "SIGKILL at a random moment of a run on Cora, or in the next save of a checkpoint after it",
    "resumes to the sha256 of the unbroken run",
    tries=50,
    quick=4,
    run=killed_runs,
)
