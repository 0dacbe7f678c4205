"""Compare what we say that work will need with the memory that it takes at its peak.

Run: python tools/memory_estimates.py

Before a dense reference, an edge-support diffusion by torch's own products, or a dump of all attention, its need is
estimated, and refused if it does not fit. Each is done here on five sizes, each in a process of its own; the estimate
must be within 15 % of the peak. Writes results/memory_estimates.json and .md; exit code 1 if one is further off.
"""

import ctypes
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from cagat import CaGATConv, reference
from cagat.files import atomic_write
from cagat.kernels import CSRGraph, torch_products
from fault_kinds.forked import Forked
from fault_kinds.peak_memory import forget_peak, held_bytes, peak_bytes
from fault_kinds.report import facts, today

RESULTS = Path(__file__).parents[1] / "results" / "memory_estimates.json"
WITHIN = 0.15
_M_MMAP_THRESHOLD = -3


def dense_reference(nodes: int, *, gradients: bool = False) -> Callable[[], object]:
    """Algorithm 1, dense."""
    edges = torch.randint(nodes, (2, 4 * nodes))
    A, edge = reference.dense_adjacency(edges, nodes)
    Z, att = torch.randn(nodes, 4, 8), torch.randn(4, 8)
    Z.requires_grad_(gradients)

    def run() -> object:
        with torch.set_grad_enabled(gradients):
            result = reference.cagat_layer(Z, att, att, A, edge)
        if gradients:
            result.H.sum().backward()
        return result

    return run


def edges_over_a_hub(degree: int) -> Callable[[], object]:
    """A step of diffusion on the edges of a star, by torch's products, as on a GPU or in half precision."""
    leaves = torch.arange(1, degree + 1)
    graph = CSRGraph.from_edge_index(
        torch.stack([torch.cat([leaves, leaves * 0]), torch.cat([leaves * 0, leaves])]), degree + 1
    )
    pattern, weights = graph.pattern, graph.transition("row", torch.float32)
    values = torch.randn(graph.num_entries, 8)

    def run() -> object:
        return torch_products.edge_diffusion(
            pattern.rowptr, pattern.col, weights[0], pattern.rowptr_t, pattern.col_t, weights[1], values, False
        )

    return run


def all_attention(nodes: int) -> Callable[[], object]:
    """The rows of G and of S of all nodes."""
    edges, x = torch.randint(nodes, (2, 4 * nodes)), torch.randn(nodes, 16)
    conv = CaGATConv(16, 4, heads=4)
    conv.attention(x, edges, nodes=[0])  # Kernels are compiled and the graph is prepared.
    return lambda: conv.attention(x, edges, nodes=torch.arange(nodes))


WORK: dict[str, tuple[Callable[[int], Callable[[], object]], tuple[int, ...]]] = {
    "dense reference": (dense_reference, (1000, 1200, 1400, 1600, 2000)),
    "dense reference, for gradients": (partial(dense_reference, gradients=True), (800, 1000, 1200, 1400, 1600)),
    "edge support over a hub": (edges_over_a_hub, (600, 800, 1000, 1200, 1400)),
    "attention of all nodes": (all_attention, (1500, 2000, 2500, 3000, 3500)),
}


def measured(name: str, size: int) -> dict[str, Any]:
    """The estimate and the peak of one piece of work."""
    with tempfile.TemporaryDirectory() as folder:
        ended = Forked(_measure, name, size, folder=Path(folder)).wait()
    if ended.code != 0:
        raise SystemExit(f"{name}, {size}: {ended.err}")
    found: dict[str, Any] = json.loads(ended.out)
    return {"work": name, "size": size, **found, "ratio": round(found["estimate"] / found["peak"], 3)}


def _measure(name: str, size: int) -> None:
    # Matrices that are too many for a memory are larger than what malloc keeps for itself: let it keep nothing.
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**16)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    WORK[name][0](10)()  # Libraries take memory of their own with their first call.
    run = WORK[name][0](size)
    estimates = []
    # Whatever is asked for is granted, and noted.
    with mock.patch("cagat.memory.free_memory", return_value=_Noted(estimates)):
        forget_peak()
        before = held_bytes()
        kept = run()
        peak = peak_bytes() - before
    del kept
    print(json.dumps({"estimate": max(estimates), "peak": peak}))


class _Noted:
    """Memory without end that notes how much of it was asked for."""

    def __init__(self, asked: list[int]) -> None:
        self.asked = asked

    def __lt__(self, needed: int) -> bool:
        self.asked.append(needed)
        return False


def main() -> None:
    """Measure, print and write."""
    rows = []
    for name, (_, sizes) in WORK.items():
        for size in sizes:
            rows.append(measured(name, size))
            print("{work}, {size}: estimate {estimate}, peak {peak}, ratio {ratio}".format(**rows[-1]), flush=True)
    command = " ".join(["python tools/memory_estimates.py", *sys.argv[1:]])
    atomic_write(
        RESULTS, json.dumps({"command": command, "date": today(), "versions": facts(), "rows": rows}, indent=2) + "\n"
    )
    lines = ["| work | size | estimate, MiB | peak, MiB | ratio |", "|---|--:|--:|--:|--:|"]
    lines += [
        f"| {row['work']} | {row['size']} | {row['estimate'] >> 20} | {row['peak'] >> 20} | {row['ratio']:.2f} |"
        for row in rows
    ]
    atomic_write(RESULTS.with_suffix(".md"), "\n".join([*lines, "", f"Written by `{command}` on {today()}.", ""]))
    off = [row for row in rows if abs(row["ratio"] - 1) > WITHIN]
    print(f"{len(rows) - len(off)} passed, {len(off)} failed")
    sys.exit(bool(off))


if __name__ == "__main__":
    main()
