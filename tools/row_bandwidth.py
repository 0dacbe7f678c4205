"""How fast rows of features come out of the caches and out of main memory: `python tools/row_bandwidth.py FILE`.

One product with the rows of neighbours that are drawn at random, ten for each node: gigabytes of rows in a second, the
best of some, with rows that are asked for late (into the first cache) and early (into the second). It bounds what can
become of the time per edge, and says from which size on asking early pays (docs/performance.md).
"""

import itertools
import json
import sys
import time
from pathlib import Path

import torch

from cagat.experiments.bench.facts import facts
from cagat.kernels import CSRPattern, row_program
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_program import RowProgram
from cagat.kernels.scratch import scratch

NODES, DEGREE, THREADS = (2_500, 20_000, 60_000, 250_000, 1_000_000), 10, (1, 2)
LAYOUT = RowLayout(8, 8, torch.float32)


def gigabytes_a_second(nodes: int, repeats: int) -> float:
    """What a product with random neighbours reads, without its indices and weights."""
    col = torch.randint(0, nodes, (nodes * DEGREE,), dtype=torch.int32)
    rowptr = torch.arange(nodes + 1, dtype=torch.int32) * DEGREE
    pattern, weight = CSRPattern(rowptr, col, rowptr, col, col), torch.rand(col.numel())
    rows, out = (scratch(nodes, LAYOUT.width, dtype=LAYOUT.dtype).normal_() for _ in range(2))
    best = float("inf")
    for _ in range(repeats):
        program = RowProgram(pattern, (weight, weight), LAYOUT)
        program.aggregate(out, x=rows)
        started = time.perf_counter()
        program.run()
        best = min(best, time.perf_counter() - started)
    return col.numel() * LAYOUT.width * LAYOUT.dtype.itemsize / best / 1e9


def main(path: Path) -> None:
    """Measure, print and write."""
    torch.manual_seed(0)
    found = []
    for threads in THREADS:
        torch.set_num_threads(threads)
        for nodes, asked in itertools.product(NODES, ("late", "early")):
            row_program.CACHED_BYTES = -1 if asked == "early" else 2**62
            speed = gigabytes_a_second(nodes, 50 if nodes < 100_000 else 5)
            print(f"{nodes:>9,} nodes, {threads} threads, asked for {asked}: {speed:.1f} GB/s")
            found.append({"nodes": nodes, "threads": threads, "asked_for": asked, "gigabytes_per_second": speed})
    written = {"measured": facts("python tools/row_bandwidth.py"), "row_bytes": 256, "found": found}
    path.write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
