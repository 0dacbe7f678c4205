"""One measurement in a process of its own: `python -m cagat.experiments.bench.probe WHAT DATASET THREADS`.

Answers with one line of JSON: the milliseconds of some steps after the first, which waits for the operating system to
give it memory; the number of edges; and in bytes the peak of memory of the process and of all steps above what was
loaded before them. Memory that is freed is kept for the next step, as it is by `cagat train`.
"""

import json
import sys
from pathlib import Path

import psutil
import torch
from torch_geometric.nn import GATConv

from cagat import data, models
from cagat.experiments.bench.epochs import training_step
from cagat.experiments.bench.layers import layer_step
from cagat.experiments.bench.measurement import milliseconds
from cagat.kernels import CSRGraph, row_program
from cagat.memory import require_memory
from cagat.nn import CaGATConv, SparseFeatures
from cagat.training.compute import keep_freed_memory

# Copies of features that PyG's GATConv holds for each edge, forward and backward: messages before and after they are
# weighted, their gradients, and a product on the way to the gradient of the weights; one more to be safe.
_EDGE_FEATURES = 6


def main(what: str, dataset: str, threads: int) -> None:
    """Measure and print."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    graph = data.load(dataset, sparse=dataset == "pubmed")
    prepared = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes)
    _warm_up()
    if prepared.num_nodes > 100_000:  # There rows come from main memory, for which there is machine code of its own.
        row_program.CACHED_BYTES = -1
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
        step = training_step(model, (features, prepared), (train, graph.y[train]))
    loaded = psutil.Process().memory_info().rss
    _forget_peak()
    repeats = 5 if graph.num_edges > 1_000_000 else 20
    step()
    taken = [milliseconds(step) for _ in range(repeats)]
    peak = _peak()
    print(json.dumps({"times": taken, "edges": graph.num_edges, "peak": peak, "above": peak - loaded}))


def _warm_up() -> None:
    """Compile what the step needs on a graph of two nodes, so that the compiler's memory and time are not counted."""
    edges = torch.tensor([[0], [1]])
    for sizes in ((64, 8, 8), (64, 8, 1), (64, 3, 1)):
        conv = CaGATConv(*sizes)
        conv(torch.randn(2, 64), edges).sum().backward()


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
