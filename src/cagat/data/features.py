"""Scaling of node features, and features for graphs that have none."""

from typing import get_args

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.converters import Names, sparse_tensor
from cagat.errors import DatasetError, NonFiniteError
from cagat.settings import FeatureNorm


def normalize_features(x: Tensor, norm: FeatureNorm = "l1") -> Tensor:
    """Scale the rows of a feature matrix; a sparse matrix stays sparse, a row of zeros stays zero.

    Args:
        x: Shape `(nodes, features)`, dense or sparse CSR. It is not changed.
        norm: `"l1"`: absolute values of a row sum to 1; `"l2"`: a row has length 1; `"binary"`: whatever is not zero
            becomes 1; `"none"`: the matrix itself.
    """
    if norm not in get_args(FeatureNorm):
        raise DatasetError(f"There is no normalization {norm!r}. Choose one of {', '.join(get_args(FeatureNorm))}.")
    if not isinstance(x, Tensor):
        raise DatasetError(f"Features must be a tensor, but are a {type(x).__name__}. Convert with torch.as_tensor(x).")
    if norm == "none":
        return x
    if x.dim() != 2:
        raise DatasetError(f"Features must have shape (nodes, features), but have {tuple(x.shape)}. Reshape them.")
    if not x.dtype.is_floating_point:
        raise DatasetError(f"Features must be floating-point numbers, but are {x.dtype}. Call x.float() first.")
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise DatasetError(f"Features must be dense or sparse CSR, but are {x.layout}. Call x.to_sparse_csr() first.")
    values = x if x.layout is torch.strided else x.values()
    if not values.is_meta and (wrong := int((~values.isfinite()).sum())):
        raise NonFiniteError(
            f"Features hold {wrong} values that are NaN or infinite. Fill or remove them, for instance with "
            "torch.nan_to_num(x)."
        )
    least = torch.finfo(x.dtype).tiny
    if norm == "binary":
        values = (values != 0).to(x.dtype)
    elif x.layout is torch.strided:
        values = torch.nn.functional.normalize(values, p=1 if norm == "l1" else 2, dim=1, eps=least)
    else:
        rows = x.crow_indices().diff()
        total = torch.segment_reduce(values.abs() if norm == "l1" else values.square(), "sum", lengths=rows)
        length = total if norm == "l1" else total.sqrt()
        values = values / length.clamp(min=least).repeat_interleave(rows)
    if x.layout is torch.strided:
        return values
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, size=x.shape, check_invariants=False)


def lacks_features(graph: Data) -> bool:
    """Whether every node of a graph is a feature of its own, which is what a graph without features is given."""
    x = graph.x
    if x.shape != (graph.num_nodes, graph.num_nodes):
        return False
    if x.layout is torch.strided:
        return bool(torch.equal(x, torch.eye(len(x), dtype=x.dtype)))
    rows = torch.arange(len(x) + 1)
    found = torch.equal(x.crow_indices(), rows) and torch.equal(x.col_indices(), rows[:-1])
    return bool(found and (x.values() == 1).all())


def structural_features(graph: Data) -> Data:
    """The graph with the rows of A + I as its features: for each node, itself and its neighbours, by their names.

    So a node that comes later has features, too: those of its neighbours that the model knows. Directions and weights
    of edges do not count. `tools/structural_features.py` compares these features with others.
    """
    nodes, (source, target) = np.arange(graph.num_nodes), graph.edge_index.numpy()
    ends = np.concatenate([source, target, nodes]), np.concatenate([target, source, nodes])
    rows = sparse.csr_matrix((np.ones(len(ends[0]), dtype=np.float32), ends), shape=(len(nodes), len(nodes)))
    rows.data[:] = 1
    graph = graph.clone()
    graph.x = sparse_tensor(rows)
    graph.feature_names = Names(graph.get("node_names", [str(node) for node in nodes]))
    graph.structural = True
    return graph
