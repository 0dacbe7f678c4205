"""Measure what docs/scaling.md says about batches: test accuracy with and without them, on the same splits.

Run: python tools/cluster_accuracy.py --dataset pubmed --splits 5

The file is written after each run, and a run that is in it already is not done again.
"""

import argparse
import json
import platform
import shlex
import statistics
import sys
import tempfile
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cagat.files import atomic_write
from cagat.training import Run, TrainConfig


def run(values: dict[str, Any]) -> dict[str, Any]:
    """Train as `cagat train` does; what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        result = Run.start(TrainConfig.from_values(values), Path(folder) / "run").train()
    return {
        "seed": result.seed,
        "test_accuracy": round(100 * (result.test_accuracy or 0.0), 2),
        "val_loss": round(result.val_loss, 4),
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "seconds": round(result.seconds, 1),
    }


def summary(arguments: argparse.Namespace, runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """All that should be known of the runs."""
    pairs = [
        (full["test_accuracy"], batched["test_accuracy"])
        for full in runs["full"]
        for batched in runs["cluster"]
        if full["seed"] == batched["seed"]
    ]
    return {
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in ("cagat", "torch", "torch_geometric", "pymetis")}
        | {"python": platform.python_version()},
        "dataset": arguments.dataset,
        "parts": arguments.parts,
        "parts_per_batch": arguments.parts_per_batch,
        "mean_full": round(statistics.mean(full for full, _ in pairs), 2) if pairs else None,
        "mean_cluster": round(statistics.mean(batched for _, batched in pairs), 2) if pairs else None,
        "runs": runs,
    }


def main() -> None:
    """Measure, and write the file after each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="pubmed")
    parser.add_argument("--data-dir")
    parser.add_argument("--parts", type=int, default=50)
    parser.add_argument("--parts-per-batch", type=int, default=10)
    parser.add_argument("--splits", type=int, default=5, help="how many splits")
    parser.add_argument("--first-split", type=int, default=0, help="the number, which is the seed, of the first")
    parser.add_argument("--out", type=Path, help="default: results/cluster_DATASET.json")
    arguments = parser.parse_args()
    out = arguments.out or Path("results") / f"cluster_{arguments.dataset}.json"
    known = json.loads(out.read_text()) if out.exists() else {"runs": {"full": [], "cluster": []}}
    for key in ("dataset", "parts", "parts_per_batch"):
        if known.get(key, getattr(arguments, key)) != getattr(arguments, key):
            raise SystemExit(f"{out} has {key}={known[key]}. Choose another --out.")
    runs = known["runs"]
    batching = {"batching": "cluster", "parts": arguments.parts, "parts_per_batch": arguments.parts_per_batch}
    for seed in range(arguments.first_split, arguments.first_split + arguments.splits):
        for name, changes in (("full", {}), ("cluster", batching)):
            if any(one["seed"] == seed for one in runs[name]):
                continue
            values = {"dataset": arguments.dataset, "data_dir": arguments.data_dir, "seed": seed, "threads": 1}
            runs[name].append(run({**values, **changes}))
            atomic_write(out, json.dumps(summary(arguments, runs), indent=1) + "\n")
            print(name, runs[name][-1], flush=True)
    atomic_write(out, json.dumps(summary(arguments, runs), indent=1) + "\n")


if __name__ == "__main__":
    main()
