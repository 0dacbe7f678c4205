"""DGL's GATConv, which needs an environment of its own.

No file here may be called like a package that DGL imports: Python looks for those beside the probe first.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from cagat.experiments.bench import dgl_probe
from cagat.experiments.bench.layers import layer_inputs, layer_step
from cagat.experiments.bench.measurement import Budget, Measurement, row_of, threads_set_to, times_of
from cagat.nn import CaGATConv


def why_without_dgl() -> str:
    """Why DGL is not measured unless somebody names an environment that has it."""
    return (
        "DGL's GATConv: the newest DGL that pip finds, 2.1.0, is built for PyTorch 2.0 to 2.2 and cannot be imported "
        f"beside PyTorch {version('torch')}. Name the Python of an environment that has it with --dgl."
    )


def measure_dgl(
    dataset: str, threads: tuple[int, ...], budget: Budget, python: Path, left_out: Callable[[str], None]
) -> Iterator[Measurement]:
    """The layer beside DGL's GATConv, which runs in a process of its own between two halves of our measurements."""
    prepared, x = layer_inputs(dataset)
    ours = layer_step(CaGATConv(64, 8, 8), x, prepared)
    with tempfile.TemporaryDirectory() as directory:
        edges = Path(directory) / "edges.npy"
        np.save(edges, prepared.edge_index.numpy())
        for number in threads:
            with threads_set_to(number):
                before = times_of(ours, budget)
                command = [str(python), dgl_probe.__file__, str(edges), str(x.size(0)), str(number)]
                command += [str(budget.seconds), str(budget.repeats)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  As told.
                if done.returncode:
                    reason = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
                    left_out(f"DGL's GATConv: {python} could not run it: {reason}")
                    return
                after = times_of(ours, budget)
            answer = json.loads(done.stdout.splitlines()[-1])
            peer = f"DGL {answer['dgl']} GATConv, PyTorch {answer['torch']}, own environment"
            yield row_of(f"compared: layer, {dataset}", number, before + after, peer, answer["ms"])
