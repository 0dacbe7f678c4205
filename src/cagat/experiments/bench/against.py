"""The layer of this checkout against that of another, in turn: `cagat bench --against CHECKOUT`.

Each checkout has a process of its own, which waits while the other works. They take turns of a few steps, so that what
disturbs the machine disturbs both; a ratio is the median over the turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cagat
from cagat.errors import CagatError
from cagat.experiments.bench.layers import layer_inputs
from cagat.experiments.bench.measurement import Measurement, row_of

CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "layer": (8, 8, {}),
    "layer, xi=0": (8, 8, {"xi": 0.0}),
    "layer, plain GAT (alpha=0, xi=0, lam=1)": (8, 8, {"alpha": 0.0, "xi": 0.0, "lam": 1.0}),
}

# It runs in any checkout, so it uses nothing but what every one of them has.
_WORKER = """
import json, sys, time
import numpy as np, torch
from cagat import CaGATConv, CSRGraph
edges, nodes, threads, heads, channels, options = sys.argv[1:]
torch.set_num_threads(int(threads))
torch.manual_seed(0)
x = torch.randn(int(nodes), 64, requires_grad=True)
graph = CSRGraph.from_edge_index(torch.from_numpy(np.load(edges)), int(nodes), add_self_loops=False)
layer = CaGATConv(64, int(channels), int(heads), **json.loads(options))
def step():
    layer.zero_grad()
    started = time.perf_counter()
    layer(x, graph).sum().backward()
    return 1000 * (time.perf_counter() - started)
started = time.perf_counter()
step()
print(json.dumps(1000 * (time.perf_counter() - started)), flush=True)
for line in sys.stdin:
    step()  # Its caches hold what the other process left there.
    print(json.dumps([step() for _ in range(int(line))]), flush=True)
"""


def measure_against(checkout: Path, threads: tuple[int, ...], turns: int) -> Iterator[Measurement]:
    """Forward and backward of the layer, in both checkouts."""
    theirs, ours = checkout / "src", Path(cagat.__file__).parents[1]
    if not (theirs / "cagat").is_dir():
        raise CagatError(f"{checkout} is no checkout of cagat: there is no {theirs / 'cagat'}")
    peer = f"commit {commit_of(checkout)}"
    with tempfile.TemporaryDirectory() as directory:
        for dataset in ("cora", "pubmed"):
            prepared, x = layer_inputs(dataset)
            edges = Path(directory) / f"{dataset}.npy"
            np.save(edges, prepared.edge_index.numpy())
            steps = 8 if dataset == "cora" else 2
            for number in threads:
                for case, (heads, channels, options) in CASES.items():
                    arguments = [str(edges), str(x.size(0)), *map(str, (number, heads, channels)), json.dumps(options)]
                    with _Worker(ours, arguments) as one, _Worker(theirs, arguments) as other:
                        times: list[list[float]] = [[], []]
                        for turn in range(turns):
                            for place in (0, 1) if turn % 2 else (1, 0):
                                times[place].append(statistics.median((one, other)[place].times(steps)))
                    row = row_of(f"{case}, {dataset}", number, times[0], peer, times[1], 1.05)
                    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
                    yield Measurement(**(row.as_dict() | {"ratio": ratio}))


def commit_of(checkout: Path = Path(cagat.__file__).parents[2]) -> str:
    """The commit of a checkout, with a plus if it was changed since."""
    git = ["git", "-C", str(checkout)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)  # noqa: S603
        status = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if status.stdout.strip() else "")


class _Worker:
    """A process that steps when it is told to."""

    def __init__(self, source: Path, arguments: list[str]) -> None:
        environment = os.environ | {"PYTHONPATH": str(source)}
        command = [sys.executable, "-c", _WORKER, *arguments]
        self._process = subprocess.Popen(  # noqa: S603  It is our own program.
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.first_ms = self._answer()

    def times(self, steps: int) -> list[float]:
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)
        times: list[float] = self._answer()
        return times

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CagatError(f"a measured process ended with code {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
