"""Calls of the layer and of the models with something wrong."""

import torch

from cagat import CaGAT, CaGATConv, CSRGraph
from cagat.models import create, names
from fault_kinds.bad_calls import EDGES, INF, NAN, BadCall, X, with_value

LOOK_AT_FEATURES = [name for name in names() if not name.startswith("labelprop")]
LOOK_AT_EDGES = [name for name in names() if name not in ("mlp", "logreg")]


def _conv(**arguments: object) -> CaGATConv:
    return CaGATConv(**{"in_channels": 5, "out_channels": 4, "heads": 2} | arguments)


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
    "NaN in features": BadCall(lambda: _conv()(with_value(X, NAN), EDGES), r"1 values that are NaN", r"fill or remove"),
    "infinite feature": BadCall(lambda: _conv()(with_value(X, INF), EDGES), r"or infinite", r"nan_to_num"),
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
    "xi that is no number": BadCall(lambda: _conv(xi=NAN), r"got nan", r"in \[0, 1e\+30\]"),
    "xi beyond single precision": BadCall(lambda: _conv(xi=1e300), r"1e\+300", r"in \[0, 1e\+30\]"),
    "a slope beyond single precision": BadCall(lambda: _conv(negative_slope=-1e300), r"-1e\+300", r"in \[-1e\+30, "),
    "negative rounds": BadCall(lambda: _conv(K=-1), r"got -1", r"not below 0"),
    "dropout above 1": BadCall(lambda: _conv(dropout=2), r"got 2", r"in \[0, 1\]"),
    "unknown support": BadCall(lambda: _conv(support="some"), r"'some'", r"one of full, edges"),
    "bipartite": BadCall(lambda: CaGATConv((5, 5), 4), r"\(5, 5\)", r"one number"),
    "input size of -7": BadCall(lambda: _conv(in_channels=-7), r"got -7", r"at least 1, or -1"),
    "input size of 0": BadCall(lambda: _conv(in_channels=0), r"got 0", r"at least 1, or -1"),
    "input size of True": BadCall(lambda: _conv(in_channels=True), r"got True", r"at least 1, or -1"),
    "a misspelt argument": BadCall(lambda: _conv(alhpa=0.4), r"'alhpa'", r"did you mean alpha\?"),
    "an unknown argument": BadCall(lambda: _conv(zzz=1), r"'zzz'", r"choose from in_channels"),
    **{
        f"a text for {name}": BadCall(lambda name=name: _conv(**{name: "no"}), rf"{name}.*'no'", r"True or False")
        for name in ("concat", "bias", "residual", "feedback", "learn_coefficients", "add_self_loops")
    },
    **{
        f"{dtype} indices": BadCall(
            lambda dtype=dtype: _conv()(X, EDGES.to(dtype)), str(dtype), r"edge_index\.long\(\)"
        )
        for dtype in (torch.uint16, torch.uint32, torch.uint64)
    },
    "nodes as complex numbers": BadCall(
        lambda: _conv().attention(X, EDGES, nodes=torch.tensor([1j])), r"complex64", r"must be integers"
    ),
    "rounds as a fraction": BadCall(
        lambda: _conv().attention(X, EDGES, nodes=0, rounds=1.0), r"got 1\.0", r"integer in 0\.\.3"
    ),
    "size as a number": BadCall(lambda: _conv()(X, EDGES, size=5), r"got 5", r"None or \(4, 4\)"),
    "sparse weights": BadCall(lambda: _conv()(X, EDGES, torch.ones(4).to_sparse()), r"sparse_coo", r"to_dense\(\)"),
    "sparse edge features": BadCall(
        lambda: _conv(edge_dim=3)(X, EDGES, torch.ones(4, 3).to_sparse()), r"sparse_coo", r"to_dense\(\)"
    ),
    "weights without data": BadCall(
        lambda: _conv()(X, EDGES, torch.ones(4).to("meta")), r"edge_attr is on the device meta", r"make it on a device"
    ),
    "weights beyond double precision": BadCall(
        lambda: _conv()(X, EDGES.repeat(1, 2), torch.full((8,), 1e308, dtype=torch.double)), r"1e\+308", r"scale them"
    ),
    "unknown filling": BadCall(lambda: _conv(edge_dim=2, fill_value="bogus"), r"'bogus'", r"one of mean, add"),
    "filling that is no number": BadCall(lambda: _conv(edge_dim=2, fill_value=NAN), r"got nan", r"in \[-1e\+30, "),
    "filling of a wrong size": BadCall(
        lambda: _conv(edge_dim=2, fill_value=torch.ones(3))(X, EDGES, torch.ones(4, 2)), r"\(3,\)", r"shape \(2,\)"
    ),
    "edges sparse in three dimensions": BadCall(
        lambda: _conv()(X, torch.ones(4, 4, 2).to_sparse()), r"\(4, 4, 2\)", r"to_sparse\(2\)"
    ),
    "edges sparse in rows only": BadCall(lambda: _conv()(X, torch.eye(4).to_sparse(1)), r"in 1 dim", r"to_sparse\(2\)"),
    "graph of a list": BadCall(
        lambda: CSRGraph.from_edge_index([[0], [1]], 4), r"edge_index.*list", r"torch\.as_tensor\(edge_index\)"
    ),
    "graph with a list of weights": BadCall(
        lambda: CSRGraph.from_edge_index(EDGES, 4, [1.0] * 4), r"edge_weight.*list", r"torch\.as_tensor\(edge_weight\)"
    ),
    "graph of a sparse matrix": BadCall(
        lambda: CSRGraph.from_edge_index(EDGES.to_sparse(), 4), r"sparse_coo", r"give its sources and targets"
    ),
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
    "misspelt argument of a layer": BadCall(lambda: CaGAT(5, 4, 2, 3, alhpa=1), r"'alhpa'", r"did you mean alpha\?"),
    "gcn of an unknown input": BadCall(lambda: create("gcn", -1, 3), r"in_channels.*got -1", r"at least 1"),
    "mlp without classes": BadCall(lambda: create("mlp", 5, 0), r"out_channels.*got 0", r"at least 1"),
    "gatv2 of half a class": BadCall(lambda: create("gatv2", 5, 0.5), r"out_channels.*got 0\.5", r"at least 1"),
    "label propagation without classes": BadCall(lambda: create("labelprop", 5, 0), r"got 0", r"at least 1"),
    **{
        f"features of another width for {name}": BadCall(
            lambda name=name: create(name, 3, 3)(X, EDGES), r"5 features", r"in_channels=5"
        )
        for name in LOOK_AT_FEATURES
    },
    **{
        f"NaN in features for {name}": BadCall(
            lambda name=name: create(name, 5, 3).eval()(with_value(X, NAN), EDGES),
            r"1 values that are NaN",
            r"fill or remove",
        )
        for name in LOOK_AT_FEATURES
    },
    **{
        f"index out of range for {name}": BadCall(
            lambda name=name: create(name, 5, 3)(X, EDGES + 1), r"node 4", r"renumber"
        )
        for name in LOOK_AT_EDGES
    },
    **{
        f"edges as a list for {name}": BadCall(
            lambda name=name: create(name, 5, 3)(X, [[0], [1]]), r"list", r"torch\.as_tensor"
        )
        for name in LOOK_AT_EDGES
    },
    "sparse features for gatv2": BadCall(
        lambda: create("gatv2", 5, 3)(X.to_sparse(), EDGES), r"sparse_coo", r"x\.to_dense\(\)"
    ),
    "hyperparameter out of range": BadCall(lambda: create("gat", 5, 3, dropout=2), r"is 2", r"from 0 to 1"),
}
