"""Small graphs in parts, for tests."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
from torch_geometric.data import Data

from cagat import data
from cagat.parts.part_files import Manifest
from cagat.parts.partition import Method, partition
from cagat.parts.whole_graph import WholeGraph
from cagat.training.problem import graph_digest

NAME = "synthetic:nodes=200,degree=4,classes=3,features=8,seed=0"


def some_graph(*, weighted: bool = False, directed: bool = False, dense: bool = False) -> Data:
    """A graph of 200 nodes, with what is asked for."""
    graph = data.load(NAME, sparse=True)
    if directed:
        graph.edge_index = graph.edge_index[:, : graph.edge_index.shape[1] * 3 // 4]
        graph.directed = True
    if weighted:
        # The same both ways, as in an undirected graph.
        graph.edge_weight = 0.5 + (graph.edge_index.sum(dim=0) % 7).float() / 7
    if dense:
        graph.x = graph.x.to_dense() + 0.1
    return graph


def cut(graph: Data, out: Path, parts: int, method: Method = "metis") -> Manifest:
    """Write a graph in parts."""
    return partition(WholeGraph.of_data(graph, graph_digest(graph, graph.y)), out, parts, method)


def write_tables(folder: Path, graph: Data, *, weighted: bool = False, split: bool = False) -> None:
    """Write an undirected graph as tables whose nodes are their numbers; each edge is there once."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target = graph.edge_index.numpy()
    once = source < target
    edges = {"source": source[once], "target": target[once]}
    if weighted:
        edges["weight"] = graph.edge_weight.numpy()[once]
    nodes = np.arange(graph.num_nodes)
    x = graph.x.to_dense().numpy()
    codes = np.array(["train", "val", "test", ""])[nodes % 4]
    labels = {"node": nodes, "label": graph.y.numpy()} | ({"split": codes} if split else {})
    pyarrow.csv.write_csv(pa.table(edges), folder / "edges.csv")
    features = {"node": nodes, **{f"f{column}": x[:, column] for column in range(x.shape[1])}}
    pyarrow.csv.write_csv(pa.table(features), folder / "features.csv")
    pyarrow.csv.write_csv(pa.table(labels), folder / "labels.csv")


def rejoined(parts: list[dict[str, np.ndarray]], manifest: Manifest) -> tuple[torch.Tensor, torch.Tensor]:
    """A and the features of a graph in parts, dense, with nodes by the numbers that they had."""
    nodes = manifest.num_nodes
    old = np.concatenate([part["nodes"] for part in parts])
    A, x = torch.zeros(nodes, nodes, dtype=torch.float64), torch.zeros(nodes, manifest.features)
    for part, start in zip(parts, manifest.bounds, strict=False):
        columns = np.concatenate([np.arange(start, start + len(part["nodes"])), part["halo"]])
        row = part["nodes"][np.repeat(np.arange(len(part["nodes"])), np.diff(part["rowptr"]))]
        A[row, old[columns[part["col"]]]] = torch.from_numpy(np.array(part.get("weight", np.ones(len(row)))))
        if "x" in part:
            x[part["nodes"]] = torch.from_numpy(np.array(part["x"]))
        else:
            row = part["nodes"][np.repeat(np.arange(len(part["nodes"])), np.diff(part["x_rowptr"]))]
            x[row, part["x_col"].astype(np.int64)] = torch.from_numpy(np.array(part["x_value"]))
    return A, x
