"""Calls with something wrong: what is called, the value that the message must name, and a word of its remedy."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import networkx
import numpy as np
import torch
from scipy import sparse

from cagat import CaGAT, CaGATClassifier, CaGATConv, CSRGraph, data
from cagat.models import create
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


def _conv(**arguments: object) -> CaGATConv:
    return CaGATConv(**{"in_channels": 5, "out_channels": 4, "heads": 2} | arguments)


def _fit(X: object = POINTS, y: object = LABELS, graph: object = None, **parameters: object) -> CaGATClassifier:
    return CaGATClassifier(**{"epochs": 2} | parameters).fit(X, y, graph=graph)


def _config(**values: object) -> TrainConfig:
    return TrainConfig.from_values(values)


def _with(x: torch.Tensor, value: float) -> torch.Tensor:
    changed = x.clone()
    changed[1, 2] = value
    return changed


def _points(value: float) -> np.ndarray:
    changed = POINTS.copy()
    changed[1, 2] = value
    return changed


LAYER = {
    "double features": BadCall(lambda: _conv()(X.double(), EDGES), r"float64", r"convert with x\.to\(torch.float32\)"),
    "integer features": BadCall(lambda: _conv()(X.long(), EDGES), r"int64", r"convert with"),
    "half features": BadCall(lambda: _conv()(X.half(), EDGES), r"float16", r"convert with"),
    "double sparse features": BadCall(lambda: _conv()(X.double().to_sparse(), EDGES), r"float64", r"convert with"),
    "wide features": BadCall(lambda: _conv(in_channels=3)(X, EDGES), r"5 features", r"in_channels=5"),
    "wide sparse features": BadCall(
        lambda: _conv(in_channels=3)(X.to_sparse(), EDGES), r"5 features", r"in_channels=5"
    ),
    "features in three dimensions": BadCall(lambda: _conv()(X[None], EDGES), r"\(1, 4, 5\)", r"must have shape"),
    "NaN in features": BadCall(lambda: _conv()(_with(X, NAN), EDGES), r"1 values that are NaN", r"fill or remove"),
    "infinite feature": BadCall(lambda: _conv()(_with(X, INF), EDGES), r"or infinite", r"nan_to_num"),
    "features without data": BadCall(lambda: _conv()(X.to("meta"), EDGES), r"device meta", r"make it on a device"),
    "edges without data": BadCall(lambda: _conv()(X, EDGES.to("meta")), r"device meta", r"make it on a device"),
    "features sparse in rows only": BadCall(lambda: _conv()(X.to_sparse(1), EDGES), r"rows and columns", r"to_sparse"),
    "complex adjacency": BadCall(
        lambda: _conv()(X, torch.eye(4, dtype=torch.complex64).to_sparse()), r"complex64", r"abs\(\)"
    ),
    "edge features in three dimensions": BadCall(
        lambda: _conv(edge_dim=3)(X, EDGES, torch.ones(4, 3, 1)), r"\(4, 3, 1\)", r"must have shape"
    ),
    "a fraction of an edge feature": BadCall(lambda: _conv(edge_dim=1.5), r"1\.5", r"at least 1"),
    "rounds beyond all integers": BadCall(lambda: _conv(K=2**63), r"9223372036854775808", r"at most 10000"),
    "units beyond all memory": BadCall(
        lambda: _conv(out_channels=2**30, heads=2**20), r"1048576 x 1073741824 units", r"Ask for fewer"
    ),
    "nodes beyond all memory": BadCall(
        lambda: CSRGraph.from_edge_index(EDGES, 2**62), r"4611686018427387904", r"without gaps"
    ),
    "edges as a list": BadCall(lambda: _conv()(X, [[0], [1]]), r"list", r"torch\.as_tensor"),
    "no edges at all": BadCall(lambda: _conv()(X, None), r"NoneType", r"must be a tensor"),
    "float indices": BadCall(lambda: _conv()(X, EDGES.float()), r"float32", r"edge_index\.long\(\)"),
    "boolean indices": BadCall(lambda: _conv()(X, EDGES.bool()), r"bool", r"edge_index\.long\(\)"),
    "negative index": BadCall(lambda: _conv()(X, EDGES - 1), r"node -1", r"renumber"),
    "index out of range": BadCall(lambda: _conv()(X, EDGES + 1), r"node 4", r"renumber"),
    "edges of a wrong shape": BadCall(lambda: _conv()(X, EDGES.t()[:3]), r"\(3, 2\)", r"must have shape \(2,"),
    "dense adjacency": BadCall(lambda: _conv()(X, torch.eye(4)), r"\(4, 4\)", r"must have shape \(2,"),
    "sparse adjacency that is not square": BadCall(
        lambda: _conv()(X, torch.ones(4, 3).to_sparse()), r"\(4, 3\)", r"there are 4 nodes"
    ),
    "NaN weight": BadCall(
        lambda: _conv()(X, EDGES, torch.tensor([1, 1, NAN, 1])), r"edge 2 has nan", r"finite and not negative"
    ),
    "negative weight": BadCall(lambda: _conv()(X, EDGES, -torch.ones(4)), r"-1\.0", r"finite and not negative"),
    "complex weights": BadCall(lambda: _conv()(X, EDGES, 1j * torch.ones(4)), r"complex64", r"edge_attr\.real"),
    "too few weights": BadCall(lambda: _conv()(X, EDGES, torch.ones(3)), r"\(3,\)", r"one for each edge"),
    "weights as a list": BadCall(lambda: _conv()(X, EDGES, [1.0] * 4), r"list", r"torch\.as_tensor"),
    "edge features without edge_dim": BadCall(
        lambda: _conv()(X, EDGES, torch.ones(4, 3)), r"3 features", r"edge_dim=3"
    ),
    "edge features of a wrong width": BadCall(
        lambda: _conv(edge_dim=2)(X, EDGES, torch.ones(4, 3)), r"3 features", r"edge_dim=3"
    ),
    "node out of range": BadCall(lambda: _conv().attention(X, EDGES, nodes=4), r"no node 4", r"from 0 to 3"),
    "node as a fraction": BadCall(lambda: _conv().attention(X, EDGES, nodes=1.5), r"float32", r"must be integers"),
    "node as a text": BadCall(lambda: _conv().attention(X, EDGES, nodes="a"), r"'a'", r"pass a list"),
    "rounds out of range": BadCall(lambda: _conv().attention(X, EDGES, nodes=0, rounds=9), r"got 9", r"in 0\.\.3"),
    "no heads": BadCall(lambda: _conv(heads=0), r"got 0", r"at least 1"),
    "half a channel": BadCall(lambda: _conv(out_channels=0.5), r"got 0\.5", r"at least 1"),
    "alpha above 1": BadCall(lambda: _conv(alpha=2), r"got 2", r"in \[0, 1\]"),
    "alpha as a text": BadCall(lambda: _conv(alpha="much"), r"'much'", r"must be a number"),
    "xi that is no number": BadCall(lambda: _conv(xi=NAN), r"got nan", r"finite and not below 0"),
    "negative rounds": BadCall(lambda: _conv(K=-1), r"got -1", r"not below 0"),
    "dropout above 1": BadCall(lambda: _conv(dropout=2), r"got 2", r"in \[0, 1\]"),
    "unknown support": BadCall(lambda: _conv(support="some"), r"'some'", r"one of full, edges"),
    "bipartite": BadCall(lambda: CaGATConv((5, 5), 4), r"\(5, 5\)", r"one number"),
    "graph of a part of a node": BadCall(lambda: CSRGraph.from_edge_index(EDGES, 4.5), r"4\.5", r"must be an integer"),
}
MODEL = {
    "no layers": BadCall(lambda: CaGAT(5, 4, 0, 3), r"got 0", r"at least 1"),
    "half a layer": BadCall(lambda: CaGAT(5, 4, 1.5, 3), r"got 1\.5", r"must be an integer"),
    "no classes": BadCall(lambda: CaGAT(5, 4, 2, 0), r"got 0", r"at least 1"),
    "dropout that is no number": BadCall(lambda: CaGAT(5, 4, 2, 3, dropout=NAN), r"got nan", r"in \[0, 1\]"),
    "features of another width": BadCall(lambda: CaGAT(3, 4, 2, 3)(X, EDGES), r"5 features", r"in_channels=5"),
    "unknown model": BadCall(lambda: create("cagta", 5, 3), r"'cagta'", r"Did you mean cagat"),
    "unknown hyperparameter": BadCall(lambda: create("cagat", 5, 3, headz=2), r"'headz'", r"Did you mean heads"),
    "hyperparameter out of range": BadCall(lambda: create("gat", 5, 3, dropout=2), r"is 2", r"from 0 to 1"),
}
ESTIMATOR = {
    "one class only": BadCall(lambda: _fit(y=np.ones(8, int)), r"one class, 1", r"at least two classes"),
    "no training node": BadCall(lambda: _fit(y=-np.ones(8, int)), r"None of the 8 nodes", r"Give some nodes"),
    "NaN in X": BadCall(lambda: _fit(_points(NAN)), r"NaN", r"missing values|imputer|Input X contains NaN"),
    "infinity in X": BadCall(lambda: _fit(_points(INF)), r"infinity", r"too large|Input X contains infinity"),
    "too few labels": BadCall(lambda: _fit(y=LABELS[:5]), r"5", r"[Ii]nconsistent"),
    "index out of range": BadCall(lambda: _fit(graph=np.array([[0], [9]])), r"node 9", r"Renumber"),
    "negative index": BadCall(lambda: _fit(graph=np.array([[0], [-1]])), r"node -1", r"Renumber"),
    "float indices": BadCall(lambda: _fit(graph=np.array([[0.0], [1.0]])), r"float64", r"astype\(int\)"),
    "sparse graph that is not square": BadCall(
        lambda: _fit(graph=sparse.csr_array(np.ones((8, 7)))), r"\(8, 7\)", r"must be one node"
    ),
    "graph of other nodes": BadCall(lambda: _fit(graph=networkx.path_graph(5)), r"5 nodes", r"must be one node"),
    "dense graph": BadCall(lambda: _fit(graph=np.eye(8)), r"\(8, 8\)", r"csr_array"),
    "negative weights in a graph": BadCall(lambda: _fit(graph=sparse.csr_array(-np.eye(8, k=1))), r"-1", r"0 or more"),
    "epochs below 1": BadCall(lambda: _fit(epochs=0), r"got 0", r"at least 1"),
    "hidden as a text": BadCall(lambda: _fit(hidden="8"), r"'8'", r"must be a number"),
    "no neighbours": BadCall(lambda: _fit(n_neighbors=0), r"got 0", r"at least 1"),
    "validation_fraction of 1": BadCall(lambda: _fit(validation_fraction=1.0), r"got 1\.0", r"less than 1"),
    "empty X": BadCall(lambda: _fit(POINTS[:0], LABELS[:0]), r"0 sample", r"minimum of"),
}
CONFIG = {
    "unknown key": BadCall(lambda: _config(alhpa=0.1), r"'alhpa'", r"Did you mean alpha"),
    "a word for a number": BadCall(lambda: _config(lr="fast"), r"'fast'", r"a finite number"),
    "NaN": BadCall(lambda: _config(lr=NAN), r"nan", r"a finite number"),
    "infinity": BadCall(lambda: _config(xi=INF), r"inf", r"a finite number"),
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
    "unknown data set": BadCall(lambda: data.load("crora"), r"'crora'", r"Did you mean cora"),
}
COMMANDS = {
    "unknown command": (("tran",), r"'tran'"),
    "unknown option": (("train", "--alhpa", "1"), r"--alhpa.*--alpha"),
    "text for a number": (("train", "--lr", "fast"), r"--lr.*valid number"),
    "number out of range": (("train", "--alpha", "7"), r"alpha.*from 0 to 1.*7"),
    "NaN": (("train", "--lr", "nan"), r"lr.*finite.*nan"),
    "unknown graph": (("train", "--dataset", "crora"), r"'crora'.*Did you mean cora"),
    "more labels than nodes": (("train", "--dataset", "karate", "--labels", "500"), r"500 for training.*Ask for fewer"),
    "no run": (("predict", "nowhere", "--out", "x.csv"), r"nowhere.*cagat train"),
    "nothing to resume": (("train", "--resume", "nowhere"), r"nowhere"),
    "table of an unknown kind": (("predict", ".", "--out", "x.docx"), r"x\.docx.*\.csv"),
    "a name that is too long": (("train", "--dataset", "karate", "--out", "n" * 300), r"n{200}.*too long"),
    "a file for a directory": (("train", "--dataset", "karate", "--out", "/dev/null"), r"/dev/null"),
    "an unknown graph of a table": (("reproduce", "table1", "--datasets", "crora"), r"'crora'.*Did you mean cora"),
    "rounds beyond all integers": (("train", "--rounds", "9" * 25), r"rounds must be at most"),
    "a device that is not there": (("train", "--device", "hpu"), r"'hpu'.*--device cpu"),
}
"""Command lines that must end with exit code 1 or 2 and one message that says this."""
