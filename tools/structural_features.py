"""Which features stand in for those that a graph lacks, judged on validation nodes.

Run: python tools/structural_features.py --data-dir DATA LASTFM > benchmarks/results/structural_features.jsonl

For Cora and Citeseer without their features, and for the directories of graphs without features that are given: 10
training labels per class, up to 50 validation nodes per class, three splits that no table reports (seeds 100 to 102),
the default preset of CaGAT. One line per fit: the accuracy on validation nodes. Takes about half an hour on one core.
"""

import argparse
import json
import time

import numpy as np
import torch
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from torch_geometric.data import Data

from cagat import data
from cagat.data.converters import sparse_tensor
from cagat.models import Labelled
from cagat.settings import TrainConfig
from cagat.training import accuracy, fit
from cagat.training.problem import fresh_model

LABELS, MOST_VALIDATED, COMPONENTS, SEEDS = 10, 50, 128, (100, 101, 102)


def rows_of_adjacency(graph: Data) -> sparse.csr_matrix:
    """Return A + I, with 1 for each neighbour and for the node itself."""
    nodes, ends = graph.num_nodes, graph.edge_index.numpy()
    ones = np.ones(ends.shape[1], dtype=np.float32)
    return sparse.csr_matrix((ones, ends), shape=(nodes, nodes)) + sparse.identity(nodes, np.float32, format="csr")


def candidates(graph: Data) -> dict[str, torch.Tensor]:
    """Return the feature matrices to compare."""
    rows = rows_of_adjacency(graph)
    svd = TruncatedSVD(COMPONENTS, random_state=0).fit_transform(rows)
    identity = sparse.identity(graph.num_nodes, np.float32, format="csr")
    return {
        "rows of A + I": sparse_tensor(sparse.csr_matrix(rows)),
        "128 singular vectors of A + I": torch.tensor(svd, dtype=torch.float32),
        "identity": sparse_tensor(sparse.csr_matrix(identity)),
    }


def draw(y: torch.Tensor, seed: int) -> tuple[Labelled, Labelled]:
    """Return the first nodes of each class in a random order to train and the next to validate; the rest stays."""
    order = np.random.RandomState(seed).permutation(len(y))
    parts: tuple[list[int], list[int]] = ([], [])
    for label in range(int(y.max()) + 1):
        members = order[y.numpy()[order] == label]
        parts[0].extend(members[:LABELS])
        parts[1].extend(members[LABELS : min(LABELS + MOST_VALIDATED, len(members) - 1)])
    train, val = (torch.tensor(sorted(map(int, part))) for part in parts)
    return Labelled(train, y[train]), Labelled(val, y[val])


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("own", nargs="*", help="directories of graphs without features")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for dataset in (*given.own, "cora", "citeseer"):
        graph = data.load(dataset, given.data_dir, sparse=True)
        for name, x in candidates(graph).items():
            graph.x = x
            for seed in SEEDS:
                train, val = draw(graph.y, seed)
                torch.manual_seed(seed)
                config, started = TrainConfig.from_values({"seed": seed}), time.perf_counter()
                model, inputs = fresh_model(config, graph, torch.device("cpu"))
                fit(model, inputs, train, val, config.fit_options())
                record = {"graph": graph.name, "features": name, "seed": seed}
                record["val_accuracy"] = round(accuracy(model, inputs, val), 4)
                record["val_nodes"] = len(val.nodes)
                print(json.dumps(record | {"seconds": round(time.perf_counter() - started, 1)}), flush=True)


if __name__ == "__main__":
    main()
