"""Graphs from scipy's sparse matrices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse as scipy_sparse
from torch_geometric.data import Data

from cagat.data.names import as_names
from cagat.data.numbers import as_array, as_float32, as_int64
from cagat.data.prepare import prepare
from cagat.data.raw_graph import Features, RawGraph, numbered_classes, one_hot
from cagat.errors import DatasetError


def from_scipy(
    adjacency: Any,
    features: Any = None,
    labels: ArrayLike | None = None,
    *,
    node_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    directed: bool = False,
    largest_component: bool = False,
    sparse: bool = False,
) -> Data:
    """Turn a sparse adjacency matrix into a `Data`.

    Args:
        adjacency: Square; entry (i, j) is the edge from i to j. Entries that are not all 1 are weights.
        features: One row a node, sparse or dense; without them, every node is a feature of its own.
        labels: One integer a node, -1 for unlabelled.
        node_names: One a node; without them, their numbers.
        class_names: One a class; without them, their numbers.
        directed: Whether to keep directions.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
    """
    edges = _adjacency(adjacency)
    if edges.shape[0] != edges.shape[1]:
        raise DatasetError(f"The adjacency matrix has shape {edges.shape}; it must be square.")
    nodes, weight = edges.shape[0], as_float32("adjacency", edges.data)
    y = as_int64("labels", np.full(nodes, -1) if labels is None else as_array("labels", labels), (nodes,))
    raw = RawGraph(
        edge_index=np.stack([edges.row, edges.col]).astype(np.int64),
        features=one_hot(nodes) if features is None else _matrix(features),
        labels=y,
        node_names=as_names("node_names", node_names)
        if node_names is not None
        else [str(node) for node in range(nodes)],
        class_names=as_names("class_names", class_names) if class_names is not None else numbered_classes("labels", y),
        edge_weight=None if (weight == 1).all() else weight,
        directed=directed,
        source="a scipy matrix",
    )
    return prepare(raw, sparse=sparse, largest_component=largest_component)


def _adjacency(adjacency: Any) -> scipy_sparse.coo_matrix:
    try:
        return scipy_sparse.coo_matrix(adjacency)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"The adjacency must be a scipy sparse matrix or a square array of numbers, but is a "
            f"{type(adjacency).__name__} ({error}). Convert it with scipy.sparse.csr_array(...)."
        ) from error


def _matrix(features: Any) -> Features:
    if scipy_sparse.issparse(features):
        matrix = scipy_sparse.csr_matrix(features)
        matrix.data = as_float32("features", matrix.data)
        return matrix
    return as_float32("features", as_array("features", features), 2)
