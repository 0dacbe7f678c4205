"""The layer beside one that needs a process of its own: that of another checkout, or DGL's.

Each side has a process, which waits while the other works. They take turns of a few steps, so that what disturbs the
machine disturbs both. Where its memory lies makes a process faster or slower for as long as it lives, so both are
started several times, and keep the memory that they free; a ratio is the median over the starts, and for each of them
over its turns.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import cagat
from cagat.errors import CagatError
from cagat.experiments.bench.layers import LAYERS, layer_inputs
from cagat.experiments.bench.measurement import Measurement, row_of

_SOURCE = Path(cagat.__file__).parents[1]
_STARTS = 5
# glibc keeps freed memory, as in our training. Else it depends on where things happen to lie whether a step is given
# fresh pages by the system, a thousand faults or none, which moves its time by a fifth.
_KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}

# It runs in any checkout, so it uses nothing but what every one of them has.
_CAGAT = """
from cagat import CaGATConv, CSRGraph
graph = CSRGraph.from_edge_index(edges, nodes, add_self_loops=False)
layer, inputs, about = CaGATConv(64, channels, heads, **options), (x, graph), ""
"""
_DGL = """
import dgl
from dgl.nn.pytorch import GATConv
graph = dgl.graph((edges[0], edges[1]), num_nodes=nodes)
layer, inputs = GATConv(64, channels, heads), (graph, x)
about = f"DGL {dgl.__version__} GATConv, PyTorch {torch.__version__}, own environment"
"""
_WORKER = """
import json, sys, time
import numpy as np, torch
path, (nodes, threads, heads, channels, options) = sys.argv[1], json.loads(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(0)
edges, x = torch.from_numpy(np.load(path)), torch.randn(nodes, 64, requires_grad=True)
LAYER
def step():
    layer.zero_grad()
    started = time.perf_counter()
    layer(*inputs).sum().backward()
    return 1000 * (time.perf_counter() - started)
step()
print(json.dumps(about), flush=True)
for line in sys.stdin:
    step()  # Its caches hold what the other process left there.
    print(json.dumps([step() for _ in range(int(line))]), flush=True)
"""


def measure_against(checkout: Path, threads: tuple[int, ...], turns: int) -> Iterator[Measurement]:
    """Forward and backward of the layer, in both checkouts."""
    source = checkout / "src"
    if not (source / "cagat").is_dir():
        raise CagatError(f"{checkout} is no checkout of cagat: there is no {source / 'cagat'}")
    theirs, peer = partial(_Worker, str(checkout), sys.executable, _CAGAT, source), f"commit {commit_of(checkout)}"
    for dataset, number in product(("cora", "pubmed"), threads):
        for case, (heads, channels, options, _) in LAYERS.items():
            row = _in_turns(f"{case}, {dataset}", dataset, number, (heads, channels, options), theirs, turns)
            yield replace(row, peer=peer, target=1.05)


def measure_dgl(dataset: str, threads: tuple[int, ...], turns: int, python: Path) -> Iterator[Measurement]:
    """The layer beside DGL's GATConv, in an environment that has it."""
    theirs = partial(_Worker, f"DGL's GATConv: {python}", str(python), _DGL, None)
    for number in threads:
        yield _in_turns(f"compared: layer, {dataset}", dataset, number, (8, 8, {}), theirs, turns)


def _in_turns(
    case: str,
    dataset: str,
    threads: int,
    layer: tuple[int, int, dict[str, Any]],
    theirs: Callable[[list[str]], "_Worker"],
    turns: int,
) -> Measurement:
    prepared, x = layer_inputs(dataset)
    steps = 8 if dataset == "cora" else 2
    times: list[list[float]] = [[], []]
    ratios = []
    with tempfile.TemporaryDirectory() as directory:
        edges = Path(directory) / "edges.npy"
        np.save(edges, prepared.edge_index.numpy())
        arguments = [str(edges), json.dumps([x.size(0), threads, *layer])]
        for start in range(min(_STARTS, turns)):
            # Theirs comes first: it may not be there.
            with theirs(arguments) as other, _Worker("cagat", sys.executable, _CAGAT, _SOURCE, arguments) as one:
                for turn in range(start, turns, _STARTS):
                    for place in (0, 1) if turn % 2 else (1, 0):
                        times[place].append(statistics.median((one, other)[place].times(steps)))
            latest = len(range(start, turns, _STARTS))
            ratios.append(statistics.median(a / b for a, b in zip(*(side[-latest:] for side in times), strict=True)))
    row = row_of(case, threads, times[0], other.about, times[1])
    return replace(row, ratio=statistics.median(ratios))


def commit_of(checkout: Path = _SOURCE.parent) -> str:
    """The commit of a checkout, with a plus if it was changed since."""
    git = ["git", "-C", str(checkout)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)  # noqa: S603
        status = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if status.stdout.strip() else "")


class _Worker:
    """A process that steps when it is told to; `about` is what it says of its layer."""

    def __init__(self, name: str, python: str, layer: str, source: Path | None, arguments: list[str]) -> None:
        environment = os.environ | _KEEPS_MEMORY | ({} if source is None else {"PYTHONPATH": str(source)})
        self._name, pipe = name, subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603  It is our own program.
            [python, "-c", _WORKER.replace("LAYER", layer), *arguments],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment,
        )  # fmt: skip
        self.about: str = self._answer()

    def times(self, steps: int) -> list[float]:
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)
        times: list[float] = self._answer()
        return times

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._process.communicate()[1].strip().splitlines()
            raise CagatError(f"{self._name} could not run it: {said[-1] if said else self._process.returncode}")
        return json.loads(line)

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
