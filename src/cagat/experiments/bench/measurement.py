"""A row of the table, how times are taken, and what one must know about a run to read them."""

import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cagat.training.compute import computing


@dataclass(frozen=True)
class Measurement:
    """One row of the table: medians, and as spreads the distances of the quartiles."""

    case: str  # What was measured, and on which graph.
    threads: int  # How many threads both sides had.
    ours_ms: float
    ours_spread_ms: float
    peer: str  # What was measured beside us; a dash if nothing was.
    peer_ms: float | None
    peer_spread_ms: float | None
    ratio: float  # Our median over its median; where there is no peer, the amount itself, in the unit.
    unit: str = "x"  # What the ratio counts: times the peer, MB, GiB, ms or s.
    target: float | None = None  # What the ratio should be at most,
    aim: float | None = None  # and what it should be.


class Budget(NamedTuple):
    """A comparison ends after so many seconds, or when each side was measured so often; but at least thrice."""

    seconds: float
    repeats: int


def compare(
    case: str,
    threads: int,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    budget: Budget,
    target: float | None = None,
    aim: float | None = None,
) -> Measurement:
    """Measure two sides in turn, so that what disturbs the machine disturbs both alike."""
    ours_ms: list[float] = []
    theirs_ms: list[float] = []
    with computing(threads, deterministic=False):
        for step in (ours, ours, theirs, theirs):  # The first calls compile and fill caches.
            step()
        end = time.perf_counter() + budget.seconds
        while len(ours_ms) < max(3, budget.repeats) and (len(ours_ms) < 3 or time.perf_counter() < end):
            ours_ms.append(milliseconds(ours))
            theirs_ms.append(milliseconds(theirs))
    return row_of(case, threads, ours_ms, peer, theirs_ms, target, aim)


def row_of(
    case: str,
    threads: int,
    ours_ms: list[float],
    peer: str,
    theirs_ms: list[float],
    target: float | None = None,
    aim: float | None = None,
) -> Measurement:
    """The row that two lists of times make."""
    return Measurement(
        case=case,
        threads=threads,
        ours_ms=statistics.median(ours_ms),
        ours_spread_ms=_spread(ours_ms),
        peer=peer,
        peer_ms=statistics.median(theirs_ms),
        peer_spread_ms=_spread(theirs_ms),
        ratio=statistics.median(ours_ms) / statistics.median(theirs_ms),
        target=target,
        aim=aim,
    )


def amount_row(
    case: str,
    threads: int,
    times: list[float],
    amount: float,
    unit: str,
    target: float | None = None,
    aim: float | None = None,
) -> Measurement:
    """The row of an amount that nothing is measured beside, and of the milliseconds that were taken with it."""
    row = row_of(case, threads, times, "-", times, target, aim)
    return replace(row, peer_ms=None, peer_spread_ms=None, ratio=amount, unit=unit)


def milliseconds(step: Callable[[], object]) -> float:
    """How long a step takes."""
    started = time.perf_counter()
    step()
    return 1000 * (time.perf_counter() - started)


def _spread(times: list[float]) -> float:
    if len(times) < 2:
        return 0.0
    low, _, high = statistics.quantiles(times, n=4)
    return high - low


def facts(command: str) -> dict[str, Any]:
    """The command, the date, the versions and the machine, with how busy it was and how fast its memory is."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "torch_geometric", "numba", "numpy", "scipy")},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "copy_gigabytes_per_second": _bandwidth(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _bandwidth() -> float:
    """Bytes read and written by one thread that copies 128 MB, the best of five times, each second."""
    source, target = torch.ones(2**25), torch.zeros(2**25)
    with computing(threads=1, deterministic=False):
        best = min(milliseconds(lambda: target.copy_(source)) for _ in range(5))
    return 2 * source.numel() * source.element_size() / best / 1e6
