"""What each trick of docs/performance.md gives, by itself: `python tools/measure_tricks.py FILE`.

Writes JSON: for each graph and trick the milliseconds without it and with it. They are CPU time of one thread, the best
of some dozens of runs, so that other users of the machine disturb little; caches they still share.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from cagat import data
from cagat.diffusion.fused_backward import fused_backward
from cagat.diffusion.fused_forward import fused_forward
from cagat.diffusion.fused_problem import FusedProblem
from cagat.experiments.bench.facts import facts
from cagat.kernels import CSRGraph, dropout, numba_kernels, torch_products
from cagat.kernels import scratch as scratch_room
from cagat.kernels.local_order import LocalOrder
from cagat.kernels.numba_products import edge_softmax
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_program import RowProgram

LAYOUT = RowLayout(8, 8, torch.float32)


def best(run: Callable[[], Any], repeats: int = 40) -> float:
    """The milliseconds of CPU time that a run takes at the least."""
    run()
    times = []
    for _ in range(repeats):
        started = time.thread_time()
        run()
        times.append(time.thread_time() - started)
    return 1000 * min(times)


def tricks(graph: CSRGraph) -> Iterator[tuple[str, float, float]]:
    """Each trick, with the time without it and with it."""
    yield from products(graph)
    yield from diffusions(graph)
    dst, src = torch.randn(2, graph.num_nodes, 8)
    G = torch.rand(graph.num_entries, 8)
    plain = (graph.pattern.rowptr, graph.pattern.col, dst, src, None, 0.2)
    yield (
        "softmax: torch / vectors of heads",
        best(lambda: torch_products.edge_softmax(*plain)),
        best(lambda: edge_softmax(*plain)),
    )
    yield "dropout of G: torch / hash", best(lambda: F.dropout(G, 0.6)), best(lambda: dropout(G, 0.6, True))


def products(graph: CSRGraph) -> Iterator[tuple[str, float, float]]:
    """The plain loops against the steps of row programs, ten of them in a program, and where rows begin."""
    p, n = graph.pattern, graph.num_nodes
    weights = graph.transition("row", torch.float32)
    x, y, out = torch.randn(3, n, 64)
    values, at_entries = torch.rand(2, graph.num_entries, 8)
    a = {name: getattr(p, name).numpy() for name in ("rowptr", "col", "rowptr_t", "col_t", "perm_t")}
    rows, w = (a["rowptr"], a["col"]), weights[0].numpy()
    x3, y3, out3 = (tensor.view(n, 8, 8).numpy() for tensor in (x, y, out))
    loops = {
        "Abar x": lambda: numba_kernels.spmm(*rows, w, x.numpy(), out.numpy(), 0, n),
        "G x": lambda: numba_kernels.spmm_heads(*rows, values.numpy(), x3, out3, 0, n),
        "G^T x": lambda: numba_kernels.spmm_heads_t(
            a["rowptr_t"], a["col_t"], a["perm_t"], values.numpy(), x3, out3, 0, n
        ),
        "inner products": lambda: numba_kernels.sddmm_heads(*rows, x3, y3, at_entries.numpy(), 0, n),
    }
    steps: dict[str, Callable[[RowProgram], None]] = {
        "Abar x": lambda program: program.aggregate(out, x=x),
        "G x": lambda program: program.aggregate(out, values=values, y=x),
        "G^T x": lambda program: program.aggregate(out, values=values, y=x, transpose=True),
        "inner products": lambda program: program.inner(at_entries, x, y),
    }

    def ten(step: Callable[[RowProgram], None]) -> None:
        program = RowProgram(p, weights, LAYOUT)
        for _ in range(10):
            step(program)
        program.run()

    for name, loop in loops.items():
        yield f"{name}: plain loop / row step", best(loop), best(lambda name=name: ten(steps[name])) / 10
    # As NumPy's large blocks begin, 16 bytes after a line of the cache, and as ours do.
    between = torch.randn(n * 64 + 4)[4:].view(n, 64)
    times = (best(lambda rows=rows: ten(lambda program: program.aggregate(out, x=rows))) / 10 for rows in (between, x))
    yield "Abar x: rows across lines of the cache / in whole lines", *times


def diffusions(graph: CSRGraph) -> Iterator[tuple[str, float, float]]:
    """The fused diffusion, forward and backward, in the order given and in the local one, with and without scratch."""
    torch.manual_seed(0)
    Z, grad = torch.randn(2, graph.num_nodes, 8, 8)
    G = torch.rand(graph.num_entries, 8)
    nodes, entries = torch.arange(graph.num_nodes), torch.arange(graph.num_entries)
    as_given = LocalOrder(graph.pattern, nodes.int(), nodes, entries.int())

    def run(order: LocalOrder, xi: float) -> None:
        weights = order.weights(graph.transition("row", torch.float32)[0])
        problem = FusedProblem.reduced(order, weights, LAYOUT, (0.4, 0.3, xi), 3, 2)
        kept = fused_forward(problem, Z, G)
        fused_backward(problem, kept.chain, kept.hidden, kept.B, G, grad)

    for xi in (1e-3, 0.0):
        times = (best(lambda xi=xi, order=order: run(order, xi), 15) for order in (as_given, graph.local_order()))
        yield f"diffusion, xi={xi:g}: given order / local order", *times
    kept_bytes, scratch_room._KEPT_BYTES = scratch_room._KEPT_BYTES, 0
    without = best(lambda: run(graph.local_order(), 1e-3), 15)
    scratch_room._KEPT_BYTES = kept_bytes
    yield "diffusion, xi=0.001: fresh memory / kept memory", without, best(lambda: run(graph.local_order(), 1e-3), 15)


def main(target: Path) -> None:
    """Measure all tricks on Cora and PubMed."""
    torch.set_num_threads(1)
    rows = []
    for name in ("cora", "pubmed"):
        loaded = data.load(name)
        graph = CSRGraph.from_edge_index(loaded.edge_index, loaded.num_nodes)
        for trick, without, with_it in tricks(graph):
            print(f"{name}: {trick}: {without:.3f} / {with_it:.3f} ms", flush=True)
            rows.append({"graph": name, "trick": trick, "without_ms": without, "with_ms": with_it})
    run = facts("python tools/measure_tricks.py")
    target.write_text(json.dumps({"run": run, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
