"""What one must know about a run to read its figures."""

import datetime
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from cagat.experiments.bench.measurement import threads_set_to


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
