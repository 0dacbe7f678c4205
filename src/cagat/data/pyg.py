"""To PyTorch Geometric's `Data` and back."""

import warnings

import numpy as np
import psutil
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.names import Names
from cagat.data.raw_graph import Features, RawGraph
from cagat.errors import DatasetError


def to_data(graph: RawGraph, *, sparse_features: bool = False) -> Data:
    """Turn a graph into a PyG `Data`, whose `node_names` follow `subgraph` and whose other names stay whole.

    Args:
        graph: A tidy graph.
        sparse_features: Whether `x` is a sparse CSR tensor instead of a dense one. PyG's `subgraph` needs a dense `x`.
    """
    data = Data(
        x=_sparse_tensor(graph.features) if sparse_features else _dense_tensor(graph),
        edge_index=torch.from_numpy(np.ascontiguousarray(graph.edge_index)),
        y=torch.from_numpy(graph.labels),
    )
    if graph.edge_weight is not None:
        data.edge_weight = torch.from_numpy(graph.edge_weight)
    if graph.edge_attr is not None:
        data.edge_attr = torch.from_numpy(graph.edge_attr)
    data.name, data.source, data.sha256 = graph.name, graph.source, graph.sha256
    data.directed = graph.directed
    data.node_names = list(graph.node_names)
    data.class_names = Names(graph.class_names)
    data.feature_names = Names(graph.feature_names)
    return data


def _dense_tensor(graph: RawGraph) -> Tensor:
    rows, columns = graph.features.shape
    needed, free = 4 * rows * columns, psutil.virtual_memory().available
    if needed > free // 2:
        raise DatasetError(
            f"{graph.name}: {rows} x {columns} dense features take {needed / 2**30:.1f} GiB, more than half of the "
            f"{free / 2**30:.1f} GiB that are free. Load them with sparse=True."
        )
    dense = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
    return torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))


def _sparse_tensor(features: Features) -> Tensor:
    matrix = sparse.csr_matrix(features)
    with warnings.catch_warnings():
        # torch says once a process that its CSR tensors are in beta; the user has asked for them by name.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            check_invariants=True,
        )
