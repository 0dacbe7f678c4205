"""Measure what `--deterministic` costs: an epoch with it and without it, by turns.

Run: python tools/deterministic_cost.py

Each pair is one epoch of CaGAT with it and one without it, on the same graph and in the same process, so that whatever
else the machine does falls on both. The median of the pairs' ratios is the cost. Writes results/deterministic_cost.json
with the load of the machine: torch's threads wait for each other, so that on a busy machine one alone may be faster.
"""

import argparse
import json
import os
import statistics
import sys
import time
from itertools import product
from pathlib import Path

import torch

from cagat.files import atomic_write
from cagat.training import TrainConfig, Trainer
from cagat.training.compute import computing
from cagat.training.problem import Problem, fresh_model
from fault_kinds.report import facts, today

RESULTS = Path(__file__).parents[1] / "results" / "deterministic_cost.json"


def ratios(dataset: str, threads: int, pairs: int) -> list[float]:
    """Of each pair, how much longer the deterministic epoch took."""
    config = TrainConfig.from_values({"dataset": dataset, "labels": 20, "val_labels": 20, "patience": 10**6})
    problem, cpu = Problem.load(config), torch.device("cpu")
    torch.manual_seed(0)
    model, inputs = fresh_model(config, problem.graph, cpu)
    trainer = Trainer(model, inputs, problem.part("train"), problem.part("val"), config.fit_options())
    found = []
    for number in range(pairs + 2):
        seconds = {}
        for deterministic in (False, True) if number % 2 else (True, False):
            with computing(threads, deterministic):
                started = time.perf_counter()
                trainer.run_epoch()
                seconds[deterministic] = time.perf_counter() - started
        if number >= 2:  # The first ones compile.
            found.append(seconds[True] / seconds[False])
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument(
        "--datasets", nargs="+", default=["cora", "synthetic:nodes=20000,degree=8,features=500,classes=3"]
    )
    options = parser.parse_args()
    rows = []
    for dataset, threads in product(options.datasets, options.threads):
        found = ratios(dataset, threads, options.pairs)
        low, middle, high = (round(value, 3) for value in statistics.quantiles(found, n=4))
        rows.append({"dataset": dataset, "threads": threads, "pairs": len(found), "ratio": middle})
        rows[-1] |= {"lower_quartile": low, "upper_quartile": high}
        print(f"{dataset}, {threads} threads: {middle:.2f} times an epoch ({low:.2f} to {high:.2f})", flush=True)
    command = " ".join(["python tools/deterministic_cost.py", *sys.argv[1:]])
    found_all = {"command": command, "date": today(), "load": os.getloadavg()[0], "versions": facts(), "rows": rows}
    atomic_write(RESULTS, json.dumps(found_all, indent=2) + "\n")


if __name__ == "__main__":
    main()
