"""Is a model that is fitted from the last weights no worse than one anew? Written for docs/evidence/labelling.md.

Run: python tools/warm_starts.py --data-dir DATA >> benchmarks/results/warm_starts.jsonl
Then: python tools/warm_starts.py --table benchmarks/results/warm_starts.jsonl

Labels come in one by one, in the order of `cagat suggest`, as on the page of `cagat label`. After each label a model is
fitted from the weights of the one before it; at some numbers of labels one is fitted anew as well. Both are judged on
those of one half of the nodes (`RandomState(100).permutation(n)[: n // 2]`, on which the constants of `cagat suggest`
were chosen, too) that are not labelled; weights have seeds that no table reports. One line per fit that is judged.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from cagat.experiments.summary import paired_difference
from cagat.labelling.fitting import Start, fit
from cagat.settings import TrainConfig
from cagat.style import Table
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.suggest import suggest_in
from cagat.training.calibration import expected_calibration_error
from cagat.training.problem import load_graph

FROM, TO = 2, 5
"""Fits are judged from so many labels per class on average to so many, at each multiple."""


def measure(dataset: str, seed: int, data_dir: str | None) -> None:
    """Print a line for each judged fit on a graph."""
    config = TrainConfig.from_values({"dataset": dataset, "protocol": "all", "seed": seed})
    graph = load_graph(dataset, data_dir, config)
    names, count, classes = graph.class_names, int(graph.num_nodes), len(graph.class_names)
    half = np.random.RandomState(100).permutation(count)[: count // 2]
    space = NodeSpace(graph.x, graph.edge_index, getattr(graph, "edge_weight", None))
    found = suggest_in(space, TO * classes, labelled=np.empty(0, dtype=np.int64), num_classes=classes)
    order = [one.index for one in found]
    for kind in ("anew", "from the last weights"):
        start: Start | None = None
        # A chain begins with a fit anew, one label before the first that is judged.
        for many in range(FROM * classes - 1, TO * classes + 1):
            judged = many >= FROM * classes and many % classes == 0
            if kind == "anew" and not judged:
                continue
            labels = {node: names[graph.y[node]] for node in order[:many]}
            started = time.perf_counter()
            start = start if start is not None and start.leads_to(labels) else None
            problem, trainer = fit(graph, labels, config, folds=False, start=start)
            if kind != "anew":
                start = Start(labels, trainer.model.state_dict())
            if not judged:
                continue
            seconds, logits = round(time.perf_counter() - started, 2), trainer.logits()
            assert logits is not None
            nodes = torch.tensor([node for node in half.tolist() if node not in labels])
            # Classes that no label has yet are wrong.
            known = problem.graph.class_names
            truth = torch.tensor([known.index(name) if name in known else -1 for name in names])[graph.y[nodes]]
            shares = logits[nodes].double().softmax(dim=1)
            found_by = {
                "accuracy": (shares.argmax(dim=1) == truth).double().mean().item(),
                "confidence": shares.max(dim=1).values.mean().item(),
                "calibration_error": expected_calibration_error(shares, truth),
            }
            line = {"graph": dataset, "seed": seed, "labels": many, "kind": kind, "seconds": seconds}
            print(json.dumps(line | {key: round(value, 4) for key, value in found_by.items()}), flush=True)


def table(path: Path) -> str:
    """For each kind and graph the mean accuracy, its paired difference to fits anew, and the mean time."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = []
    for graph in dict.fromkeys(line["graph"] for line in lines):
        anew: dict[int, float] = {}
        for kind in dict.fromkeys(line["kind"] for line in lines):
            own = [line for line in lines if (line["graph"], line["kind"]) == (graph, kind)]
            # Fits of one seed are of one chain, so that only seeds count as independent.
            means = {
                seed: 100 * statistics.mean(line["accuracy"] for line in own if line["seed"] == seed)
                for seed in sorted({line["seed"] for line in own})
            }
            difference = paired_difference(means, anew)
            anew = anew or means
            confidence, error = (
                100 * statistics.mean(line[key] for line in own) for key in ("confidence", "calibration_error")
            )
            cells = [f"{statistics.mean(means.values()):.1f}", difference.text() if difference else ""]
            seconds = statistics.median(line["seconds"] for line in own)
            rows.append([graph, kind, *cells, f"{confidence:.0f}", f"{error:.1f}", f"{seconds:.1f}"])
    head = ["graph", "fitted", "accuracy", "difference (paired)", "mean confidence", "calibration error", "seconds"]
    return Table(head, rows, words=2).markdown()


def main() -> None:
    """Measure, or print the table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--datasets", nargs="*", default=["cora", "citeseer", "cora_ml", "pubmed"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[100, 101, 102])
    parser.add_argument("--table", type=Path, help="only print the table of this file")
    given = parser.parse_args()
    if given.table is not None:
        print(table(given.table))
        return
    for seed in given.seeds:
        for dataset in given.datasets:
            measure(dataset, seed, given.data_dir)


if __name__ == "__main__":
    main()
