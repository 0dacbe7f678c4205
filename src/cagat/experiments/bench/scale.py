"""What becomes of time and memory on large graphs. Each figure is taken in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from cagat.errors import CagatError
from cagat.experiments.bench.measurement import Measurement, row_of

_SMALL = "synthetic:nodes=10000,degree=10,classes=8,features=64,seed=0"
_LARGE = "synthetic:nodes=1000000,degree=10,classes=8,features=64,seed=0"


class Probe(NamedTuple):
    """What :mod:`~cagat.experiments.bench.probe` says.

    Attributes:
        times: The milliseconds of some steps.
        edges: How many edges the graph has.
        peak: The most memory that the process had, in bytes.
        above: The same, above what was loaded before the steps.
    """

    times: list[float]
    edges: int
    peak: int
    above: int


def measure_memory() -> Iterator[Measurement]:
    """The peak of a training step on PubMed, above the loaded data."""
    step = probe("training", "pubmed", 1)
    yield _amount("training step, peak memory, pubmed", 1, step, step.above / 1e6, "MB", 600, 250)


def measure_scale(threads: tuple[int, ...], left_out: Callable[[str], None]) -> Iterator[Measurement]:
    """The time for each edge of ten million, against a hundred thousand, and one training step in memory.

    PyG's GATConv is held against itself, too: what becomes of random access to main memory is not only our affair.
    """
    for number in threads:
        yield _per_edge("layer", "layer, time per edge, synthetic, 10 million edges", number, 1.5, 1.2)
    step = probe("training", _LARGE, max(threads))
    case = "training step, peak memory of the process, 1 million nodes, 10 million edges"
    yield _amount(case, max(threads), step, step.peak / 2**30, "GiB", 16, 8)
    try:
        yield _per_edge("peer", "compared: PyG GATConv, time per edge, synthetic, 10 million edges", max(threads))
    except CagatError as error:
        left_out(str(error))


def _per_edge(what: str, case: str, threads: int, target: float | None = None, aim: float | None = None) -> Measurement:
    """The large graph, and the small one before and after it, so that what changes with the hour changes both."""
    before, large, after = (probe(what, dataset, threads) for dataset in (_SMALL, _LARGE, _SMALL))
    row = row_of(case, threads, large.times, "itself, 100 thousand edges", before.times + after.times, target, aim)
    return replace(row, ratio=row.ratio * before.edges / large.edges)


def _amount(case: str, threads: int, step: Probe, amount: float, unit: str, target: float, aim: float) -> Measurement:
    row = row_of(case, threads, step.times, "-", step.times, target, aim)
    return replace(row, peer_ms=None, peer_spread_ms=None, ratio=amount, unit=unit)


def probe(what: str, dataset: str, threads: int) -> Probe:
    """Run :mod:`~cagat.experiments.bench.probe` and read what it says."""
    command = [sys.executable, "-m", "cagat.experiments.bench.probe", what, dataset, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  It is our own module.
    if done.returncode:
        raise CagatError(f"The {what} on {dataset} ended with code {done.returncode}: {done.stderr.strip()[-500:]}")
    return Probe(**json.loads(done.stdout.splitlines()[-1]))
