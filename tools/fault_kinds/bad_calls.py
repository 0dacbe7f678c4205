"""Calls of the estimator, of configurations and of data, and command lines, with something wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import networkx
import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from cagat import CaGATClassifier, data
from cagat.training import TrainConfig
from cagat.training.config_file import read_config

NAN, INF = float("nan"), float("inf")
X = torch.arange(20.0).reshape(4, 5) / 20
EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
POINTS = np.arange(24.0).reshape(8, 3)
LABELS = np.array([0, 1] * 4)


class BadCall(NamedTuple):
    """A call that must fail.

    Attributes:
        call: Makes it.
        names: What the message must name: the wrong value, or what is wrong about it.
        remedy: A pattern of what the message says that would do.
    """

    call: Callable[[], object]
    names: str
    remedy: str


def _fit(X: object = POINTS, y: object = LABELS, graph: object = None, **parameters: object) -> CaGATClassifier:
    return CaGATClassifier(**{"epochs": 2} | parameters).fit(X, y, graph=graph)


def _joined(nodes: int = 8, **attributes: object) -> networkx.Graph:
    graph = networkx.path_graph(nodes)
    graph.add_edge(0, 1, **attributes)
    return graph


def _with_features(x: object) -> networkx.Graph:
    graph = networkx.path_graph(2)
    graph.nodes[0]["x"] = x
    return graph


def _saved(path: object = "nowhere.npz", **attributes: object) -> None:
    graph = Data(edge_index=EDGES, num_nodes=4)
    graph.update(attributes)
    data.save(graph, path)


def _config(**values: object) -> TrainConfig:
    return TrainConfig.from_values(values)


def with_value(x: torch.Tensor, value: float) -> torch.Tensor:
    """The features with one of them replaced."""
    changed = x.clone()
    changed[1, 2] = value
    return changed


def _points(value: float) -> np.ndarray:
    changed = POINTS.copy()
    changed[1, 2] = value
    return changed


ESTIMATOR = {
    "one class only": BadCall(lambda: _fit(y=np.ones(8, int)), r"one class, 1", r"at least two classes"),
    "no training node": BadCall(lambda: _fit(y=-np.ones(8, int)), r"None of the 8 nodes", r"Give some nodes"),
    "NaN in X": BadCall(lambda: _fit(_points(NAN)), r"NaN", r"imputer|HistGradientBoosting"),
    "infinity in X": BadCall(lambda: _fit(_points(INF)), r"infinity", r"Remove or replace"),
    "too few labels": BadCall(lambda: _fit(y=LABELS[:5]), r"5 labels", r"Give one label per row"),
    "index out of range": BadCall(lambda: _fit(graph=np.array([[0], [9]])), r"node 9", r"Renumber"),
    "negative index": BadCall(lambda: _fit(graph=np.array([[0], [-1]])), r"node -1", r"Renumber"),
    "float indices": BadCall(lambda: _fit(graph=np.array([[0.0], [1.0]])), r"float64", r"astype\(int\)"),
    "sparse graph that is not square": BadCall(
        lambda: _fit(graph=sparse.csr_array(np.ones((8, 7)))), r"\(8, 7\)", r"must be one node"
    ),
    "graph of other nodes": BadCall(lambda: _fit(graph=networkx.path_graph(5)), r"5 nodes", r"must be one node"),
    "dense graph": BadCall(lambda: _fit(graph=np.eye(8)), r"\(8, 8\)", r"csr_array"),
    "negative weights in a graph": BadCall(lambda: _fit(graph=sparse.csr_array(-np.eye(8, k=1))), r"-1", r"0 or more"),
    "epochs below 1": BadCall(lambda: _fit(epochs=0), r"is 0", r"at least 1"),
    "hidden as a text": BadCall(lambda: _fit(hidden="8"), r"'8'", r"must be a whole number"),
    "no neighbours": BadCall(lambda: _fit(n_neighbors=0), r"is 0", r"at least 1"),
    "validation_fraction of 1": BadCall(lambda: _fit(validation_fraction=1.0), r"is 1\.0", r"less than 1"),
    "validation_fraction of None": BadCall(lambda: _fit(validation_fraction=None), r"is None", r"less than 1"),
    "a text for a weight": BadCall(lambda: _fit(graph=_joined(weight="heavy")), r"'heavy'", r"weight=None"),
    "too few sample weights": BadCall(
        lambda: _fit().score(POINTS, LABELS, sample_weight=[1, 2]), r"\(2,\)", r"one weight per row"
    ),
    "texts for sample weights": BadCall(
        lambda: _fit().score(POINTS, LABELS, sample_weight=["a"] * 8), r"'a'", r"must be 8 numbers"
    ),
    "empty X": BadCall(lambda: _fit(POINTS[:0], LABELS[:0]), r"0 sample", r"minimum of"),
}
CONFIG = {
    "a list of values": BadCall(lambda: TrainConfig.from_values([1]), r"a list", r"Pass a dict"),
    "unknown key": BadCall(lambda: _config(alhpa=0.1), r"'alhpa'", r"Did you mean alpha"),
    "a word for a number": BadCall(lambda: _config(lr="fast"), r"'fast'", r"a number from 0"),
    "NaN": BadCall(lambda: _config(lr=NAN), r"nan", r"a number from 0"),
    "infinity": BadCall(lambda: _config(xi=INF), r"inf", r"a number from 0"),
    "a number out of range": BadCall(lambda: _config(alpha=1.5), r"1\.5", r"from 0 to 1"),
    "a negative seed": BadCall(lambda: _config(seed=-1), r"-1", r"from 0 to"),
    "a fraction of an epoch": BadCall(lambda: _config(epochs=1.5), r"1\.5", r"a whole number"),
    "a key of another model": BadCall(lambda: _config(model="gcn", xi=0.1), r"xi=0\.1", r"It takes"),
    "an unknown preset": BadCall(lambda: _config(preset="best"), r"'best'", r"Choose one of"),
    "a file that is not there": BadCall(lambda: read_config(Path("nowhere.yaml")), r"nowhere\.yaml", r"no such file"),
}
DATA = {
    "label out of range": BadCall(
        lambda: data.from_scipy(sparse.eye(3), labels=[0, 1, 2], class_names=["a", "b"]), r"label 2", r"2 classes"
    ),
    "absurd label": BadCall(lambda: data.from_scipy(sparse.eye(3), labels=[0, 1, 10**9]), r"1000000000", r"3 nodes"),
    "label below -1": BadCall(lambda: data.from_scipy(sparse.eye(3), labels=[0, 1, -2]), r"-2", r"-1 for none"),
    "float labels": BadCall(lambda: data.from_scipy(sparse.eye(3), labels=[0.0, 1.5, 1.0]), r"float64", r"integers"),
    "matrix that is not square": BadCall(
        lambda: data.from_scipy(sparse.csr_matrix(np.ones((3, 2)))), r"\(3, 2\)", r"must be square"
    ),
    "empty graph": BadCall(lambda: data.from_scipy(sparse.csr_matrix((0, 0))), r"no nodes", r"Give at least one"),
    "NaN in features of a graph": BadCall(
        lambda: data.from_scipy(sparse.eye(3), np.full((3, 2), NAN)), r"6 values", r"Fill or remove"
    ),
    "no label to split": BadCall(lambda: data.split(torch.tensor([-1, -1])), r"No node has a label", r"Give labels"),
    "classes too small to split": BadCall(
        lambda: data.split(torch.tensor([0, 1]), 1, 1), r"has 1 labelled", r"Ask for fewer"
    ),
    "labels as a list": BadCall(lambda: data.split([0, 1] * 9, 1, 1), r"list", r"torch\.as_tensor"),
    "a fraction of a label": BadCall(lambda: data.split(torch.tensor([0, 1] * 9), 1.5, 1), r"1\.5", r"whole numbers"),
    "integer features to scale": BadCall(lambda: data.normalize_features(X.long()), r"int64", r"x\.float\(\)"),
    "an array to scale": BadCall(lambda: data.normalize_features(X.numpy()), r"ndarray", r"torch\.as_tensor"),
    "a row to scale": BadCall(lambda: data.normalize_features(X[0]), r"\(5,\)", r"\(nodes, features\)"),
    **{
        f"NaN in {kind} features to scale": BadCall(
            lambda make=make, norm=norm: data.normalize_features(make(), norm),
            r"1 values that are NaN",
            r"Fill or remove",
        )
        for kind, make, norm in (
            ("dense", lambda: with_value(X, NAN), "l1"),
            ("sparse", lambda: with_value(X, INF).to_sparse_csr(), "l2"),
            ("binary", lambda: with_value(X, NAN), "binary"),
        )
    },
    "numbers for names of nodes": BadCall(
        lambda: data.from_scipy(sparse.eye(3), node_names=[1, 2, 3]), r"node_names.*one is 1", r"str\(name\)"
    ),
    "numbers for names of classes": BadCall(
        lambda: data.from_scipy(sparse.eye(3), labels=[0, 1, 0], class_names=[0, 1]), r"class_names", r"str\(name\)"
    ),
    "a text for names of nodes": BadCall(
        lambda: data.from_scipy(sparse.eye(3), node_names="abc"), r"'abc'", r"into a list"
    ),
    "no matrix": BadCall(lambda: data.from_scipy("a"), r"str", r"csr_array"),
    "rows of unlike lengths": BadCall(
        lambda: data.from_scipy(sparse.eye(2), [[1], [1, 2]]), r"features", r"rows of one length"
    ),
    "no networkx graph": BadCall(lambda: data.from_networkx(None), r"NoneType", r"networkx\.Graph\(edges\)"),
    "a number for features of a node": BadCall(
        lambda: data.from_networkx(_with_features(5)), r"Node 0.*5", r"Write \[5\]"
    ),
    "a text for a fraction": BadCall(
        lambda: data.split_fractions(torch.tensor([0, 1] * 9), "a"), r"'a'", r"needs numbers train > 0"
    ),
    "a text for labels": BadCall(lambda: data.split_fractions("a"), r"str", r"torch\.as_tensor"),
    "nothing to save": BadCall(lambda: data.save(None, "nowhere.npz"), r"NoneType", r"Data\(x="),
    "nowhere to save to": BadCall(lambda: _saved(path=None), r"None", r"ends in \.npz"),
    "a mask of other nodes to save": BadCall(
        lambda: _saved(train_mask=torch.ones(3, dtype=torch.bool)), r"train_mask.*\(3,\)", r"shape \(4,\)"
    ),
    "a mask of numbers to save": BadCall(
        lambda: _saved(val_mask=torch.arange(4)), r"val_mask.*int64", r"one truth value a node"
    ),
    "edges as a list to save": BadCall(lambda: _saved(edge_weight=[1.0]), r"edge_weight.*list", r"torch\.as_tensor"),
    "a name that is too long": BadCall(lambda: data.load("x" * 5000), r"'xxx", r"Give a shorter name"),
    "unknown data set": BadCall(lambda: data.load("crora"), r"'crora'", r"Did you mean cora"),
}
COMMANDS = {
    "unknown command": (("tran",), r"'tran'.*Did you mean 'train'"),
    "unknown option": (("train", "--alhpa", "1"), r"--alhpa.*--alpha"),
    "text for a number": (("train", "--lr", "fast"), r"--lr.*valid number"),
    "number out of range": (("train", "--alpha", "7"), r"alpha.*from 0 to 1.*7"),
    "NaN": (("train", "--lr", "nan"), r"lr.*finite.*nan"),
    "unknown graph": (("train", "--dataset", "crora"), r"'crora'.*Did you mean cora"),
    "more labels than nodes": (("train", "--dataset", "karate", "--labels", "500"), r"500 for training.*Ask for fewer"),
    "no run": (("predict", "nowhere", "--out", "x.csv"), r"nowhere.*cagat train"),
    "nothing to resume": (("train", "--resume", "nowhere"), r"nowhere.*cagat train --out"),
    "table of an unknown kind": (("predict", ".", "--out", "x.docx"), r"x\.docx.*\.csv"),
    "a name that is too long": (("train", "--dataset", "karate", "--out", "n" * 300), r"n{200}.*too long"),
    "a file for a directory": (
        ("train", "--dataset", "karate", "--out", "/dev/null"),
        r"/dev/null.*Choose another place",
    ),
    "an unknown graph of a table": (("reproduce", "table1", "--datasets", "crora"), r"'crora'.*Did you mean cora"),
    "rounds beyond all integers": (("train", "--rounds", "9" * 25), r"rounds must be at most"),
    "a device that is not there": (("train", "--device", "hpu"), r"'hpu'.*--device cpu"),
}
"""Command lines that must end with exit code 1 or 2 and one message that says this."""
