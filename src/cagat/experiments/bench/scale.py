"""What becomes of time and memory on large graphs.

Each figure is taken in a process of its own: `python -m cagat.experiments.bench.scale WHAT DATASET THREADS`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import torch
from torch_geometric.nn import GATConv

from cagat import data, models
from cagat.errors import CagatError
from cagat.experiments.bench.layers import layer_step, training_step
from cagat.experiments.bench.measurement import Measurement, amount_row, milliseconds, row_of
from cagat.kernels import CSRGraph, row_passes
from cagat.memory import require_memory
from cagat.models import Labelled
from cagat.nn import CaGATConv, SparseFeatures
from cagat.training.compute import keep_freed_memory

_SMALL = "synthetic:nodes=10000,degree=10,classes=8,features=64,seed=0"
_LARGE = "synthetic:nodes=1000000,degree=10,classes=8,features=64,seed=0"


class Probe(NamedTuple):
    """What :func:`measure_here` says; memory is in bytes."""

    times: list[float]  # The milliseconds of some steps.
    edges: int
    peak: int  # The most memory that the process had,
    above: int  # and the same above what was loaded before the steps.


def measure_memory() -> Iterator[Measurement]:
    """The peak of a training step on PubMed, above the loaded data."""
    step = probe("training", "pubmed", 1)
    yield amount_row("training step, peak memory, pubmed", 1, step.times, step.above / 1e6, "MB", 600, 250)


def measure_scale(threads: tuple[int, ...]) -> Iterator[Measurement]:
    """The time for each edge of ten million, against a hundred thousand, and one training step in memory."""
    for number in threads:
        yield _per_edge("layer", "layer, time per edge, synthetic, 10 million edges", number, 1.5, 1.2)
    step = probe("training", _LARGE, max(threads))
    case = "training step, peak memory of the process, 1 million nodes, 10 million edges"
    yield amount_row(case, max(threads), step.times, step.peak / 2**30, "GiB", 16, 8)


def measure_peer_scale(threads: tuple[int, ...]) -> Iterator[Measurement]:
    """PyG's GATConv against itself: what becomes of random access to main memory is not only our affair."""
    yield _per_edge("peer", "compared: PyG GATConv, time per edge, synthetic, 10 million edges", max(threads))


def _per_edge(what: str, case: str, threads: int, target: float | None = None, aim: float | None = None) -> Measurement:
    """The large graph, and the small one before and after it, so that what changes with the hour changes both."""
    before, large, after = (probe(what, dataset, threads) for dataset in (_SMALL, _LARGE, _SMALL))
    row = row_of(case, threads, large.times, "itself, 100 thousand edges", before.times + after.times, target, aim)
    return replace(row, ratio=row.ratio * before.edges / large.edges)


def probe(what: str, dataset: str, threads: int) -> Probe:
    """Run :func:`measure_here` and read what it says."""
    command = [sys.executable, "-m", "cagat.experiments.bench.scale", what, dataset, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  It is our own module.
    if done.returncode:
        raise CagatError(f"The {what} on {dataset} ended with code {done.returncode}: {done.stderr.strip()[-500:]}")
    return Probe(**json.loads(done.stdout.splitlines()[-1]))


# Copies of features that PyG's GATConv holds for each edge, forward and backward: messages before and after they are
# weighted, their gradients, and a product on the way to the gradient of the weights; one more to be safe.
_EDGE_FEATURES = 6


def measure_here(what: str, dataset: str, threads: int) -> None:
    """Measure in this process, and print one line of JSON that makes a :class:`Probe`.

    It has some steps after the first, which waits for the operating system to give it memory. Memory that is freed is
    kept for the next step, as it is by `cagat train`.
    """
    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    graph = data.load(dataset, sparse=dataset == "pubmed")
    prepared = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes)
    _warm_up()
    if prepared.num_nodes > 100_000:  # There rows come from main memory, for which there is machine code of its own.
        row_passes.CACHED_BYTES = -1
        _warm_up()
    if what in ("layer", "peer"):
        x = torch.randn(graph.num_nodes, 64, requires_grad=True)
        if what == "layer":
            prepared.local_order()  # Made once for a graph, as the graph is; not a part of the step.
            step = layer_step(CaGATConv(64, 8, 8), x, prepared)
        else:
            # Several features of every edge at once; on a machine that is too small others would be killed for it.
            needed = _EDGE_FEATURES * prepared.num_entries * 64 * x.element_size()
            require_memory(needed, "PyG's GATConv", "Measure it on a machine with more memory.")
            step = layer_step(GATConv(64, 8, 8, add_self_loops=False), x, prepared.edge_index)
    else:
        features = SparseFeatures.from_tensor(graph.x) if graph.x.layout != torch.strided else graph.x
        train = torch.arange(100)
        model = models.CaGAT(graph.x.size(1), 8, 2, int(graph.y.max()) + 1)
        step = training_step(model, (features, prepared), Labelled(train, graph.y[train]))
    loaded = psutil.Process().memory_info().rss
    Path("/proc/self/clear_refs").write_text("5")  # Forget the peak so far.
    repeats = 5 if graph.num_edges > 1_000_000 else 20
    step()
    taken = [milliseconds(step) for _ in range(repeats)]
    peak = 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    print(json.dumps({"times": taken, "edges": graph.num_edges, "peak": peak, "above": peak - loaded}))


def _warm_up() -> None:
    """Compile what the step needs on a graph of two nodes, so that the compiler's memory and time are not counted."""
    edges = torch.tensor([[0], [1]])
    for sizes in ((64, 8, 8), (64, 8, 1), (64, 3, 1)):
        CaGATConv(*sizes)(torch.randn(2, 64), edges).sum().backward()


if __name__ == "__main__":
    measure_here(sys.argv[1], sys.argv[2], int(sys.argv[3]))
