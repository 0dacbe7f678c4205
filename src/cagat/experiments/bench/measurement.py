"""A row of the table, how times are taken, and what one must know about a run to read them."""

import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class Measurement:
    """One row of the table: medians, and the spread of the middle half.

    Attributes:
        case: What was measured, and on which graph.
        threads: How many threads both sides had.
        ours_ms: Our median.
        ours_spread_ms: The distance of our quartiles.
        peer: What was measured beside us; a dash if nothing was.
        peer_ms: Its median.
        peer_spread_ms: The distance of its quartiles.
        ratio: Our median over its median; where there is no peer, the amount itself, in the unit.
        unit: What the ratio counts: times the peer, MB or GiB.
        target: What the ratio should be at most.
        aim: What it should be.
    """

    case: str
    threads: int
    ours_ms: float
    ours_spread_ms: float
    peer: str
    peer_ms: float | None
    peer_spread_ms: float | None
    ratio: float
    unit: str = "x"
    target: float | None = None
    aim: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON takes it."""
        return asdict(self)


@dataclass(frozen=True)
class Budget:
    """How much is spent on a comparison.

    Attributes:
        seconds: It ends when this much time has passed,
        repeats: or when each side was measured so often, but at least thrice.
    """

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
    with threads_set_to(threads):
        ours_ms, theirs_ms = _interleaved(ours, theirs, budget=budget)
    return row_of(case, threads, ours_ms, peer, theirs_ms, target, aim)


def compare_with_slow(
    case: str,
    threads: int,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    target: float,
    aim: float,
) -> Measurement:
    """Measure a side that takes so long that once must do, and ours before and after it."""
    with threads_set_to(threads):
        ours()
        before = [milliseconds(ours) for _ in range(5)]
        theirs_ms = milliseconds(theirs)
        after = [milliseconds(ours) for _ in range(5)]
    return row_of(case, threads, before + after, peer, [theirs_ms], target, aim)


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


@contextmanager
def threads_set_to(number: int) -> Iterator[None]:
    """Let torch, and with it our own kernels, use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def milliseconds(step: Callable[[], object]) -> float:
    """How long a step takes."""
    started = time.perf_counter()
    step()
    return 1000 * (time.perf_counter() - started)


def times_of(step: Callable[[], object], budget: Budget) -> list[float]:
    """How long a step takes, again and again."""
    return _interleaved(step, budget=budget)[0]


def _interleaved(*steps: Callable[[], object], budget: Budget) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in steps]
    for step in steps:  # The first calls compile and fill caches.
        step()
        step()
    end = time.perf_counter() + budget.seconds
    while len(times[0]) < max(3, budget.repeats) and (len(times[0]) < 3 or time.perf_counter() < end):
        for step, taken in zip(steps, times, strict=True):
            taken.append(milliseconds(step))
    return times


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
    with threads_set_to(1):
        source, target = torch.ones(2**25), torch.zeros(2**25)
        best = float("inf")
        for _ in range(5):
            started = time.perf_counter()
            target.copy_(source)
            best = min(best, time.perf_counter() - started)
    return 2 * source.numel() * source.element_size() / best / 1e9
