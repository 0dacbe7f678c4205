"""To PyTorch Geometric's `Data` and back."""

import logging
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.data.csr import checked_csr
from cagat.data.memory import require_memory
from cagat.data.names import Names, as_names
from cagat.data.numbers import as_float32, as_int64
from cagat.data.parts import PARTS
from cagat.data.raw_graph import Features, RawGraph, numbered_classes, one_hot
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)
_KNOWN = {"x", "edge_index", "y", "edge_weight", "edge_attr", "num_nodes", "name", "source", "sha256", "directed"}
_KNOWN |= {"node_names", "class_names", "feature_names", *(f"{part}_mask" for part in PARTS)}


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
    if graph.parts is not None:
        for number, part in enumerate(PARTS, start=1):
            data[f"{part}_mask"] = torch.from_numpy(graph.parts == number)
    data.name, data.source, data.sha256 = graph.name, graph.source, graph.sha256
    data.directed = graph.directed
    data.node_names = list(graph.node_names)
    data.class_names = Names(graph.class_names)
    data.feature_names = Names(graph.feature_names)
    return data


def from_data(data: Data) -> RawGraph:
    """Turn a PyG `Data` back into a graph that can be written to a file, or say why it cannot."""
    if not isinstance(data, Data):
        raise DatasetError(
            f"A graph is saved from torch_geometric.data.Data, not from a {type(data).__name__}. Make one with "
            "Data(x=..., edge_index=..., y=...)."
        )
    if data.edge_index is None:
        raise DatasetError("The Data has no edge_index, so it is no graph. Set data.edge_index.")
    name = str(getattr(data, "name", None) or "graph")
    if unknown := sorted(set(data.keys()) - _KNOWN):
        _log.warning("%s: not saved, because cagat has no place for them: %s", name, ", ".join(unknown))
    nodes = int(data.num_nodes or 0)
    labels = as_int64(f"{name}: y", np.full(nodes, -1) if data.y is None else _numpy("y", data.y), (nodes,))
    weight, attr, directed = getattr(data, "edge_weight", None), data.edge_attr, getattr(data, "directed", None)
    return RawGraph(
        edge_index=as_int64(f"{name}: edge_index", _numpy("edge_index", data.edge_index), (2, None)),
        features=one_hot(nodes) if data.x is None else _features(data.x),
        labels=labels,
        node_names=as_names("node_names", getattr(data, "node_names", None) or map(str, range(nodes))),
        class_names=as_names("class_names", getattr(data, "class_names", None) or numbered_classes(name, labels)),
        feature_names=as_names("feature_names", getattr(data, "feature_names", None) or ()),
        edge_weight=None if weight is None else as_float32("edge_weight", _numpy("edge_weight", weight)),
        edge_attr=None
        if attr is None
        else as_float32("edge_attr", _numpy("edge_attr", attr).reshape(len(attr), -1), 2),
        parts=_parts(data, nodes),
        directed=not data.is_undirected() if directed is None else bool(directed),
        name=name,
    ).check()


def _numpy(what: str, tensor: Any) -> NDArray[Any]:
    if not isinstance(tensor, Tensor):
        raise DatasetError(
            f"{what} of a Data must be a tensor, but is a {type(tensor).__name__}. Convert it with "
            "torch.as_tensor(...)."
        )
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.dtype is torch.bfloat16:
        raise DatasetError(
            f"{what} of a Data must be a dense tensor of a type that NumPy has, but is {tensor.dtype} on "
            f"{tensor.device}, {tensor.layout}. Convert it with .to_dense() or .float(), on a device such as cpu."
        )
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _features(x: Tensor) -> Features:
    if not is_torch_sparse_tensor(x):
        return as_float32("x", _numpy("x", x), 2)
    if x.dim() != 2:
        raise DatasetError(f"x of a Data must have shape (nodes, features), but has {tuple(x.shape)}. Reshape it.")
    x = x.to_sparse_csr()
    values, columns, ends = (_numpy("x", part) for part in (x.values(), x.col_indices(), x.crow_indices()))
    return checked_csr("x", values, columns, ends, (len(x), x.size(1)))


def _parts(data: Data, nodes: int) -> NDArray[np.int8] | None:
    parts = np.zeros(nodes, dtype=np.int8)
    for number, part in enumerate(PARTS, start=1):
        if f"{part}_mask" in data:
            parts[_mask(f"{part}_mask", data[f"{part}_mask"], nodes)] = number
    return parts if parts.any() else None


def _mask(what: str, given: Any, nodes: int) -> NDArray[np.bool_]:
    mask = _numpy(what, given)
    if mask.dtype.kind != "b" or mask.shape != (nodes,):
        raise DatasetError(
            f"{what} must be one truth value a node, of shape ({nodes},), but has type {mask.dtype} and shape "
            f"{mask.shape}. Split(...).masks({nodes}) makes masks of node numbers."
        )
    return mask


def _dense_tensor(graph: RawGraph) -> Tensor:
    rows, columns = graph.features.shape
    require_memory(
        f"{graph.name}: {rows} x {columns} dense features", 4 * rows * columns, "Load them with sparse=True."
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
