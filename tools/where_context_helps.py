"""On which nodes is tuned CaGAT better than tuned GAT, and on which worse? Written for docs/evidence/ablation.md.

Run: python tools/where_context_helps.py [--datasets cora citeseer cora_ml] [--labels 20] [--splits 10] [--out results]

Both are trained on the same splits as in Table 1, and their test nodes are sorted by how many neighbours they have, how
many of these are of their own class, how far the nearest training node is, and how large their class is. A split that
is in `where_context_helps.jsonl` is not done again; `tools/update_docs.py` makes the table.
"""

import argparse
import statistics
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from cagat.experiments.experiment import tuned
from cagat.experiments.jobs import Job, Task, fit_task
from cagat.experiments.records import Records
from cagat.experiments.summary import paired_difference
from cagat.style import Table
from cagat.training.compute import computing

METHODS = ("gat", "cagat")
NAME = "where_context_helps"

Mask = NDArray[np.bool_]


def kinds(edge_index: NDArray[np.int64], classes: NDArray[np.int64], train: NDArray[np.int64]) -> dict[str, Mask]:
    """Which nodes are of which kind; each node is of one kind of each sort."""
    nodes, (source, target) = len(classes), edge_index
    neighbours = np.bincount(target, minlength=nodes)
    own = np.bincount(target, weights=classes[source] == classes[target], minlength=nodes)
    share = own / np.maximum(neighbours, 1)
    graph = sparse.csr_matrix((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    hops = dijkstra(graph, indices=train, unweighted=True, min_only=True)
    # The place of a node's class among the classes by size, from the smallest on.
    rank = np.argsort(np.argsort(np.bincount(classes), kind="stable"))[classes]
    largest = rank.max() - rank
    return {
        "all test nodes": np.ones(nodes, dtype=bool),
        "1 neighbour": neighbours <= 1,
        "2 or 3 neighbours": (neighbours >= 2) & (neighbours <= 3),
        "4 to 7 neighbours": (neighbours >= 4) & (neighbours <= 7),
        "8 neighbours or more": neighbours >= 8,
        "all neighbours of its class": share == 1,
        "half of them or more": (share >= 0.5) & (share < 1),
        "fewer than half": share < 0.5,
        "1 step from a training node": hops <= 1,
        "2 steps": hops == 2,
        "3 steps": hops == 3,
        "4 steps or more": hops >= 4,
        "of the two smallest classes": rank < 2,
        "of the two largest classes": (largest < 2) & (rank >= 2),
        "of the other classes": (rank >= 2) & (largest >= 2),
    }


def measured(task: Task, data_dir: str | None) -> dict[str, Any]:
    """For each kind, how many test nodes of a split are of it, and how many of them each method gets right."""
    right, test = {}, np.empty(0, dtype=np.int64)
    for method in METHODS:
        row = tuned(method)
        fitted = fit_task({"model": row.method, "preset": row.preset}, task, data_dir)
        with computing(threads=1, deterministic=False), torch.no_grad():
            right[method] = (fitted.model(*fitted.inputs).argmax(dim=1) == fitted.graph.y).numpy()
        test = fitted.split.test.numpy()
    graph = fitted.graph
    sorts = kinds(graph.edge_index.numpy(), graph.y.numpy(), fitted.split.train.numpy())
    return {
        kind: {"nodes": int(mask[test].sum())} | {name: int(right[name][test][mask[test]].sum()) for name in METHODS}
        for kind, mask in sorts.items()
    }


def table(records: dict[str, dict[int, dict[str, Any]]]) -> Table:
    """One line per kind; for each graph its share of the nodes, GAT's accuracy, and CaGAT's paired difference."""
    head = ["test nodes"]
    for dataset in records:
        head += [f"{dataset}: share", "GAT", "CaGAT - GAT"]
    lines = []
    for kind in next(iter(next(iter(records.values())).values())):
        line = [kind]
        for by_seed in records.values():
            counts = {seed: found[kind] for seed, found in by_seed.items() if found[kind]["nodes"]}
            total = sum(found["all test nodes"]["nodes"] for found in by_seed.values())
            percent = {
                name: {seed: 100 * found[name] / found["nodes"] for seed, found in counts.items()} for name in METHODS
            }
            difference = paired_difference(percent["cagat"], percent["gat"])
            line += [
                f"{100 * sum(found['nodes'] for found in counts.values()) / total:.0f} %",
                f"{statistics.fmean(percent['gat'].values()):.1f}" if counts else "",
                difference.text() if difference else "",
            ]
        lines.append(line)
    return Table(head, lines, words=1)


def block(results: Path, labels: int = 20) -> str:
    """The table of docs/evidence/ablation.md."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for record in Records(results / f"{NAME}.jsonl"):
        asked = record["asked"]
        if asked["labels"] == labels:
            found.setdefault(asked["dataset"], {})[asked["seed"]] = record["found"]
    count = max(map(len, found.values()))
    note = (
        f"{labels} labels per class, {count} splits; accuracy in percent, mean over the splits; differences are "
        f"paired, with their 95 % interval. From `results/{NAME}.jsonl`."
    )
    return f"{table(found).markdown()}\n\n{note}\n"


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "cora_ml"])
    parser.add_argument("--labels", type=int, default=20, help="labels per class")
    parser.add_argument("--splits", type=int, default=10, help="how many splits, seeds 0, 1, ...")
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    records = Records(arguments.out / f"{NAME}.jsonl")
    for dataset, seed in product(arguments.datasets, range(arguments.splits)):
        task = Task(dataset, arguments.labels, seed)
        # Named by their configurations, so that another preset is another record.
        jobs = [Job(tuned(method).method, tuned(method).preset, task) for method in METHODS]
        asked = {**task._asdict(), **{job.method + "_config": job.asked["config"] for job in jobs}}
        if records.get(asked) is None:
            records.add(asked, measured(task, arguments.data_dir))
        print(f"{dataset}, split {seed}", file=sys.stderr)


if __name__ == "__main__":
    main()
