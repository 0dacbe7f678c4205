"""Measure what docs/baselines.md says: test accuracy of models on ten splits, and how long they train.

Run: python tools/baseline_accuracy.py gcn appnp gcn:ref gcn:ref,hidden=32

Each argument is a model, perhaps a preset of it, and perhaps values that differ from the preset. Results are added to
the file, in which a later run of the same model takes the place of an earlier one, or joins it if the seeds differ.
"""

import argparse
import json
import platform
import shlex
import statistics
import sys
import time
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml
from torch_geometric.data import Data

from cagat import data, models
from cagat.models import Labelled
from cagat.training import FitOptions, accuracy, fit
from cagat.training.freed_memory import keep_freed_memory

OPTIONS = ("lr", "weight_decay", "epochs", "patience")


def parse(wanted: str) -> tuple[str, str | None, dict[str, Any]]:
    """Take `model:preset,key=value` apart."""
    head, *changes = wanted.split(",")
    name, _, preset = head.partition(":")
    pairs = (change.split("=", 1) for change in changes)
    return name, preset or None, {key: yaml.safe_load(value) for key, value in pairs}


def run(wanted: str, graph: Data, labels: int, seed: int) -> dict[str, Any]:
    """Train a model on one split and test it, as `cagat train` does."""
    name, preset, changes = parse(wanted)
    card = models.card(name)
    values = {**card.preset(preset), **changes}
    x = data.normalize_features(graph.x, values["feature_norm"])
    inputs = (x if card.network.takes_sparse else x.to_dense(), graph.edge_index)
    split = data.split(graph.y, labels, 20, seed)
    train, val, test = (Labelled(nodes, graph.y[nodes]) for nodes in split)
    torch.manual_seed(seed)
    own = {key: value for key, value in changes.items() if key in card.network.hyperparameters}
    model = models.create(name, x.size(1), len(graph.class_names), preset, **own)
    started, started_cpu = time.perf_counter(), time.process_time()
    result = fit(model, inputs, train, val, FitOptions(**{key: values[key] for key in OPTIONS if key in values}))
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - started_cpu
    return {
        "seed": seed,
        "test_accuracy": round(100 * accuracy(model, inputs, test), 2),
        "val_accuracy": round(100 * accuracy(model, inputs, val), 2),
        "epochs": len(result.history),
        "best_epoch": result.best.number,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),  # Tells how long it takes where nothing else runs.
    }


def summary(wanted: str, labels: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """All that should be known of the runs of a model."""
    name, preset, changes = parse(wanted)
    card = models.card(name)
    found = [one["test_accuracy"] for one in runs]
    return {
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in ("cagat", "torch", "torch_geometric", "scikit-learn")}
        | {"python": platform.python_version()},
        "threads": torch.get_num_threads(),
        "model": name,
        "preset": preset or card.default,
        "settings": {**card.preset(preset), **changes},
        "labels_per_class": labels,
        "mean_test_accuracy": round(statistics.mean(found), 2),
        "std_test_accuracy": round(statistics.stdev(found), 2) if len(found) > 1 else None,
        "runs": runs,
    }


def joined(earlier: dict[str, Any] | None, wanted: str, labels: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary of new runs, and of earlier ones of other seeds if they were made with the same settings."""
    now = summary(wanted, labels, runs)
    if earlier is None or any(earlier[key] != now[key] for key in ("settings", "labels_per_class", "versions")):
        return now
    seeds = {one["seed"] for one in runs}
    kept = [one for one in earlier["runs"] if one["seed"] not in seeds]
    return summary(wanted, labels, sorted(kept + runs, key=lambda one: one["seed"]))


def main() -> None:
    """Measure, print a line a model and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="model, model:preset or model:preset,key=value; default: all models")
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--labels", type=int, default=20, help="training labels a class")
    parser.add_argument("--splits", type=int, default=10, help="how many splits")
    parser.add_argument("--first-seed", type=int, default=0, help="the seed of the first split")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="default: results/baselines_DATASET.json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    out = arguments.out or Path("results") / f"baselines_{arguments.dataset}.json"
    graph = data.load(arguments.dataset, sparse=True)
    for wanted in arguments.models or models.names():
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.splits)
        runs = [run(wanted, graph, arguments.labels, seed) for seed in seeds]
        known = json.loads(out.read_text()) if out.exists() else {}
        found = known[wanted] = joined(known.get(wanted), wanted, arguments.labels, runs)
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(known, indent=1) + "\n")
        seconds = max(one["cpu_seconds"] for one in runs)
        accuracies = f"{found['mean_test_accuracy']:.2f} +- {found['std_test_accuracy'] or 0:.2f}"
        print(f"{wanted}: {accuracies} % on {arguments.dataset}, at most {seconds} CPU-seconds a run", flush=True)


if __name__ == "__main__":
    main()
