"""The same weights again: in another process, and with another number of threads."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import command

_THREADS = (1, 2, 4)


def trained_again(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Train on Cora, and again; half of the tries with other numbers of threads and `--deterministic`.

    Half of all are processes that are forked, and have the addresses and the hashes of the one they come from; the
    others are started anew, with hashes of their own.
    """
    known: dict[tuple[bool, int], str] = {}
    threads = cycle(_THREADS)
    for number in range(tries):
        deterministic, seed = number % 2 == 1, draw.randrange(2)
        options = ["--deterministic", "--threads", str(next(threads))] if deterministic else ["--threads", "2"]
        training = ("train", "--dataset", "cora", "--epochs", "5", "--seed", str(seed), *options)
        first = (deterministic, seed) not in known
        for again in range(1 + first):
            out = f"run-{number}-{again}"
            code, said = (_started if number % 4 < 2 else _forked)([*training, "--out", out], folder, number)
            if code != 0:
                yield Outcome(" ".join(training), f"exit code {code}: {said}")
                return
            found = hashlib.sha256((folder / out / "model.safetensors").read_bytes()).hexdigest()
            wanted = known.setdefault((deterministic, seed), found)
        what = f"seed {seed}, {' '.join(options)}"
        yield Outcome(what, "" if found == wanted else f"sha256 {found}, but was {wanted}")


def _forked(arguments: list[str], folder: Path, number: int) -> tuple[int | None, str]:
    ended = command(*arguments, folder=folder).wait()
    return ended.code, ended.err


def _started(arguments: list[str], folder: Path, number: int) -> tuple[int | None, str]:
    environment = os.environ | {"PYTHONHASHSEED": str(number)}
    whole = [sys.executable, "-m", "cagat", *arguments]
    done = subprocess.run(whole, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


DETERMINISM = Fault(
    "determinism",
    "same seed, other process; with --deterministic also another number of threads (1, 2, 4)",
    "identical sha256 of the weights",
    tries=20,
    quick=6,
    run=trained_again,
)
