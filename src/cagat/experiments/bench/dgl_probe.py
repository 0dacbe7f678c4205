"""Time DGL's GATConv, in an environment that has it: `python dgl_probe.py EDGES NODES THREADS SECONDS REPEATS`.

The newest DGL on the package index, 2.1.0, is built for PyTorch 2.0 to 2.2 and cannot be imported beside a newer one.
So this file runs elsewhere, and imports nothing but torch, NumPy and DGL. EDGES is a .npy file, self-loops among them.
Answers with one line of JSON.
"""

import json
import sys
import time

import numpy as np
import torch


def main(edges: str, nodes: int, threads: int, seconds: float, repeats: int) -> None:
    """Measure and print."""
    import dgl  # type: ignore[import-not-found]
    from dgl.nn.pytorch import GATConv  # type: ignore[import-not-found]

    torch.set_num_threads(threads)
    source, target = torch.from_numpy(np.load(edges))
    graph = dgl.graph((source, target), num_nodes=nodes)
    layer, x = GATConv(64, 8, 8), torch.randn(nodes, 64, requires_grad=True)
    times: list[float] = []
    end = float("inf")
    while len(times) < max(3, repeats) and (len(times) < 5 or time.perf_counter() < end):
        started = time.perf_counter()
        layer.zero_grad()
        layer(graph, x).sum().backward()
        times.append(1000 * (time.perf_counter() - started))
        if len(times) == 2 and end == float("inf"):  # The first calls fill caches.
            times, end = [], time.perf_counter() + seconds
    print(json.dumps({"ms": times, "dgl": dgl.__version__, "torch": torch.__version__}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
