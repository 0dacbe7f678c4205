"""Compiled loops must notice a change in anything that they call, and give the same bits when they are loaded again."""

import os
import shutil
import subprocess
import sys

import cagat

LOOPS = """
import torch
from cagat import CaGATConv, CSRGraph
from cagat.kernels import edge_diffusion, edge_softmax, spmm
graph = CSRGraph.from_edge_index(torch.tensor([[0], [1]]), 2)
weights = graph.transition("row", torch.float32)
values = edge_softmax(graph.pattern, torch.zeros(2, 1), torch.zeros(2, 1))
print(spmm(graph.pattern, weights, torch.ones(2, 4)).sum().item())
print(edge_diffusion(graph.pattern, weights, values).sum().item())
torch.manual_seed(0)
conv = CaGATConv(4, 3)
with torch.no_grad():
    out = conv(torch.randn(50, 4), torch.randint(0, 50, (2, 400)))
print(out.double().square().sum().item())
"""


def test_a_change_in_what_loops_call_is_noticed(tmp_path):
    package = tmp_path / "cagat"
    shutil.copytree(cagat.__path__[0], package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def results():
        done = subprocess.run(
            [sys.executable, "-c", LOOPS], env=environment, capture_output=True, text=True, check=True
        )
        return [float(line) for line in done.stdout.split()]

    before = results()
    simd = package / "kernels" / "simd.py"
    text = simd.read_text()
    # Every product and sum becomes another, in a file that is neither the loops' nor the steps'.
    assert text.count("[a, b, c])") == 1
    simd.write_text(text.replace("[a, b, c])", "[a, b, b])"))
    after = results()
    assert all(one != other for one, other in zip(before, after, strict=True))
    simd.write_text(text)
    # The first process compiled, and this one loads what it has kept. Sums of doubles show every bit that differs.
    assert results() == before
