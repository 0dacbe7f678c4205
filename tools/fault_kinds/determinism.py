"""The same weights again: in another process, and with another number of threads."""

import hashlib
import random
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import command

_THREADS = (1, 2, 4)


def trained_again(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Train on Cora, and again; half of the tries with other numbers of threads and `--deterministic`."""
    known: dict[tuple[bool, int], str] = {}
    threads = cycle(_THREADS)
    for number in range(tries):
        deterministic, seed = number % 2 == 1, draw.randrange(2)
        options = ["--deterministic", "--threads", str(next(threads))] if deterministic else ["--threads", "2"]
        training = ("train", "--dataset", "cora", "--epochs", "5", "--seed", str(seed), *options)
        first = (deterministic, seed) not in known
        for again in range(1 + first):
            out = f"run-{number}-{again}"
            ended = command(*training, "--out", out, folder=folder).wait()
            if ended.code != 0:
                yield Outcome(" ".join(training), f"exit code {ended.code}: {ended.err}")
                return
            found = hashlib.sha256((folder / out / "model.safetensors").read_bytes()).hexdigest()
            wanted = known.setdefault((deterministic, seed), found)
        what = f"seed {seed}, {' '.join(options)}"
        yield Outcome(what, "" if found == wanted else f"sha256 {found}, but was {wanted}")


DETERMINISM = Fault(
    "determinism",
    "same seed, other process; with --deterministic also another number of threads (1, 2, 4)",
    "identical sha256 of the weights",
    tries=20,
    quick=4,
    run=trained_again,
)
