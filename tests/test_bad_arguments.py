"""Wrong input is refused by a typed error of ours that names the value and the remedy, in every room."""

import re
import traceback
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from cagat import CaGAT, CaGATClassifier, CaGATConv, CSRGraph, data
from cagat.memory import OutOfMemoryError
from cagat.models import create
from cagat.training import TrainConfig
from cagat.training.config_file import read_config

NAN, INF = float("nan"), float("inf")
X = torch.arange(20.0).reshape(4, 5) / 20
EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
POINTS = np.arange(24.0).reshape(8, 3)
LABELS = np.array([0, 1] * 4)
ONES = torch.ones(4)


def conv(**arguments):
    return CaGATConv(**{"in_channels": 5, "out_channels": 4, "heads": 2} | arguments)


def fit(X=POINTS, y=LABELS, graph=None, **parameters):
    return CaGATClassifier(**{"epochs": 2} | parameters).fit(X, y, graph=graph)


def config(**values):
    return TrainConfig.from_values(values)


def save(path="nowhere.npz", **attributes):
    graph = Data(edge_index=EDGES, num_nodes=4)
    graph.update(attributes)
    data.save(graph, path)


def with_value(features, value):
    changed = features.clone() if isinstance(features, torch.Tensor) else features.copy()
    changed[1, 2] = value
    return changed


def scipy_graph(**arguments):
    return data.from_scipy(sparse.eye(3), **arguments)


CALLS = {
    "layer: double features": (lambda: conv()(X.double(), EDGES), r"float64.*convert with x\.to\(torch.float32\)"),
    "layer: integer features": (lambda: conv()(X.long(), EDGES), r"int64.*convert with"),
    "layer: wide features": (lambda: conv(in_channels=3)(X, EDGES), r"5 features.*in_channels=5"),
    "layer: wide sparse features": (lambda: conv(in_channels=3)(X.to_sparse(), EDGES), r"5 features.*in_channels=5"),
    "layer: three dimensions": (lambda: conv()(X[None], EDGES), r"must have shape.*\(1, 4, 5\)"),
    "layer: NaN": (lambda: conv()(with_value(X, NAN), EDGES), r"1 values that are NaN.*fill or remove"),
    "layer: without data": (lambda: conv()(X.to("meta"), EDGES), r"device meta.*make it on a device"),
    "layer: rounds beyond integers": (lambda: conv(K=2**63), r"0 to 10000.*more than 18 digits"),
    "layer: beyond memory": (lambda: conv(out_channels=2**30, heads=2**20), r"1048576 x 1073741824 .*Ask for fewer"),
    "layer: edges as a list": (lambda: conv()(X, [[0], [1]]), r"list.*torch\.as_tensor"),
    "layer: no edges": (lambda: conv()(X, None), r"must be a tensor.*NoneType"),
    "layer: float indices": (lambda: conv()(X, EDGES.float()), r"float32.*edge_index\.long\(\)"),
    "layer: negative index": (lambda: conv()(X, EDGES - 1), r"node -1.*renumber"),
    "layer: index out of range": (lambda: conv()(X, EDGES + 1), r"node 4.*renumber"),
    "layer: shape of edges": (lambda: conv()(X, EDGES.t()[:3]), r"must have shape \(2,.*\(3, 2\)"),
    "layer: matrix not square": (lambda: conv()(X, torch.ones(4, 3).to_sparse()), r"\(4, 3\).*there are 4 nodes"),
    "layer: NaN weight": (lambda: conv()(X, EDGES, torch.tensor([1, 1, NAN, 1])), r"finite and not neg.*edge 2 .*nan"),
    "layer: negative weight": (lambda: conv()(X, EDGES, -ONES), r"finite and not negative.*-1\.0"),
    "layer: too few weights": (lambda: conv()(X, EDGES, ONES[:3]), r"one for each edge.*\(3,\)"),
    "layer: no edge_dim": (lambda: conv()(X, EDGES, torch.ones(4, 3)), r"3 features.*edge_dim=3"),
    "layer: edge_dim": (lambda: conv(edge_dim=2)(X, EDGES, torch.ones(4, 3)), r"3 features.*edge_dim=3"),
    "layer: unknown node": (lambda: conv().attention(X, EDGES, nodes=4), r"no node 4.*from 0 to 3"),
    "layer: node as a text": (lambda: conv().attention(X, EDGES, nodes="a"), r"'a'.*pass a list"),
    "layer: rounds out of range": (lambda: conv().attention(X, EDGES, nodes=0, rounds=9), r"3.*9"),
    "layer: no heads": (lambda: conv(heads=0), r"at least 1.*(got|is) 0"),
    "layer: alpha above 1": (lambda: conv(alpha=2), r"from 0 to 1.*2"),
    "layer: alpha as a text": (lambda: conv(alpha="much"), r"must be a number.*'much'"),
    "layer: xi": (lambda: conv(xi=NAN), r"1e\+30.*nan"),
    "layer: support": (lambda: conv(support="some"), r"one of full, edges.*'some'"),
    "layer: bipartite": (lambda: CaGATConv((5, 5), 4), r"one number.*\(5, 5\)"),
    "layer: misspelt": (lambda: conv(alhpa=0.4), r"'alhpa'.*Did you mean alpha\?"),
    "layer: text for a switch": (lambda: conv(feedback="no"), r"feedback.*true or false.*'no'"),
    "graph: list": (lambda: CSRGraph.from_edge_index([[0], [1]], 4), r"list.*torch\.as_tensor"),
    "graph: beyond memory": (lambda: CSRGraph.from_edge_index(EDGES, 2**62), r"4611686018427387904.*without gaps"),
    "model: no layers": (lambda: CaGAT(5, 4, 0, 3), r"at least 1.*(got|is) 0"),
    "model: features": (lambda: CaGAT(3, 4, 2, 3)(X, EDGES), r"5 features.*in_channels=5"),
    "model: unknown": (lambda: create("cagta", 5, 3), r"'cagta'.*Did you mean cagat"),
    "model: hyperparameter": (lambda: create("cagat", 5, 3, headz=2), r"'headz'.*Did you mean heads"),
    "model: out of range": (lambda: create("gat", 5, 3, dropout=2), r"from 0 to 1.*2"),
    "model: sparse for gatv2": (lambda: create("gatv2", 5, 3)(X.to_sparse(), EDGES), r"sparse_coo.*x\.to_dense\(\)"),
    "estimator: one class": (lambda: fit(y=np.ones(8, int)), r"one class, 1.*at least two classes"),
    "estimator: no label": (lambda: fit(y=-np.ones(8, int)), r"None of the 8 nodes.*Give some nodes"),
    "estimator: infinity": (lambda: fit(with_value(POINTS, INF)), r"infinity.*Remove or replace"),
    "estimator: too few labels": (lambda: fit(y=LABELS[:5]), r"5 labels.*Give one label"),
    "estimator: index": (lambda: fit(graph=np.array([[0], [9]])), r"node 9.*Renumber"),
    "estimator: not square": (lambda: fit(graph=sparse.csr_array(np.ones((8, 7)))), r"\(8, 7\).*one node"),
    "estimator: dense graph": (lambda: fit(graph=np.eye(8)), r"\(8, 8\).*csr_array"),
    "estimator: epochs": (lambda: fit(epochs=0), r"at least 1.*0"),
    "estimator: hidden as a text": (lambda: fit(hidden="8"), r"must be a.*number.*'8'"),
    "estimator: neighbours": (lambda: fit(n_neighbors=0), r"at least 1.*(got|is) 0"),
    "estimator: fraction": (lambda: fit(validation_fraction=1.0), r"less than 1.*(got|is) 1\.0"),
    "estimator: sample weights": (lambda: fit().score(POINTS, LABELS, sample_weight=[1, 2]), r"\(2,\)"),
    "config: list": (lambda: TrainConfig.from_values([1]), r"a list.*Pass a dict"),
    "config: unknown key": (lambda: config(alhpa=0.1), r"'alhpa'.*Did you mean alpha"),
    "config: word": (lambda: config(lr="fast"), r"number from 0.*'fast'"),
    "config: NaN": (lambda: config(lr=NAN), r"number from 0.*nan"),
    "config: range": (lambda: config(alpha=1.5), r"from 0 to 1.*1\.5"),
    "config: fraction": (lambda: config(epochs=1.5), r"whole number.*1\.5"),
    "config: other model": (lambda: config(model="gcn", xi=0.1), r"xi=0\.1.*It takes"),
    "config: preset": (lambda: config(preset="finest"), r"'finest'.*Choose one of"),
    "config: no file": (lambda: read_config(Path("nowhere.yaml")), r"nowhere\.yaml.*no such file"),
    "data: label out of range": (lambda: scipy_graph(labels=[0, 1, 2], class_names=["a", "b"]), r"label 2.*2 classes"),
    "data: float labels": (lambda: scipy_graph(labels=[0.0, 1.5, 1.0]), r"integers.*float64|float64.*integers"),
    "data: not square": (lambda: data.from_scipy(sparse.csr_matrix(np.ones((3, 2)))), r"must be square|\(3, 2\)"),
    "data: empty": (lambda: data.from_scipy(sparse.csr_matrix((0, 0))), r"no nodes.*Give at least one"),
    "data: NaN": (lambda: scipy_graph(features=np.full((3, 2), NAN)), r"6 values.*(Fill|Remove)"),
    "data: nothing to split": (lambda: data.split(torch.tensor([-1, -1])), r"No node has a label.*Label some nodes"),
    "data: small classes": (lambda: data.split(torch.tensor([0, 1]), 1, 1), r"has 1 labelled.*Ask for fewer"),
    "data: list to split": (lambda: data.split([0, 1] * 9, 1, 1), r"list.*torch\.as_tensor"),
    "data: integers to scale": (lambda: data.normalize_features(X.long()), r"int64.*x\.float\(\)"),
    "data: NaN to scale": (lambda: data.normalize_features(with_value(X, NAN)), r"1 values that are NaN.*Fill or"),
    "data: node names": (lambda: scipy_graph(node_names=[1, 2, 3]), r"node_names.*str\(name\)"),
    "data: no matrix": (lambda: data.from_scipy("a"), r"str.*csr_array"),
    "data: no networkx graph": (lambda: data.from_networkx(None), r"NoneType.*networkx\.Graph\(edges\)"),
    "data: text for a weight": (
        lambda: fit(graph=networkx.Graph([(i, i + 1, {"weight": "heavy"}) for i in range(7)])), r"'heavy'.*weight=None",
    ),
    "data: nothing to save": (lambda: data.save(None, "nowhere.npz"), r"NoneType"),
    "data: nowhere to save": (lambda: save(path=None), r"None.*\.npz"),
    "data: mask to save": (lambda: save(train_mask=torch.ones(3, dtype=torch.bool)), r"train_mask.*\(4,\).*\(3,\)"),
    "data: long name": (lambda: data.load("x" * 5000), r"'xxx.*Choose one of"),
    "data: unknown": (lambda: data.load("crora"), r"'crora'.*Did you mean cora"),
}  # fmt: skip
TYPES = (ValueError, TypeError, IndexError, OutOfMemoryError)
FOREIGN = ("torch", "torch_geometric", "numba", "llvmlite")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_value_and_remedy(name):
    call, pattern = CALLS[name]
    with pytest.raises(TYPES) as error:
        call()
    innermost = traceback.extract_tb(error.tb)[-1].filename
    assert not any(f"/site-packages/{package}/" in innermost for package in FOREIGN)
    assert re.search(pattern, str(error.value), re.DOTALL), str(error.value)
