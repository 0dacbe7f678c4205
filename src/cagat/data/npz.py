"""Graphs in `.npz` files: the forms of gnn-benchmark and ppnp, and what cagat adds to the first of them."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.archive import read_arrays, write_arrays
from cagat.data.csr import checked_csr
from cagat.data.file_sha256 import file_sha256
from cagat.data.numbers import as_float32, as_int64
from cagat.data.raw_graph import RawGraph, numbered_classes, one_hot
from cagat.errors import DatasetError

Arrays = dict[str, NDArray[Any]]

_MATRIX = ("data", "indices", "indptr", "shape")
_PREFIXES = {"adjacency": ("adj_", "adj_matrix."), "attributes": ("attr_", "attr_matrix.")}
_KEYS = {
    *(prefix + part for prefixes in _PREFIXES.values() for prefix in prefixes for part in _MATRIX),
    *("attr_matrix", "labels", "node_names", "class_names", "attr_names"),
    *("edge_attr", "parts", "directed"),
}
_MOST_NAME_BYTES = 2**30


def read_npz(path: Path, *, name: str | None = None) -> RawGraph:
    """Read a graph from an `.npz`.

    The adjacency matrix is CSR under `adj_*` (gnn-benchmark) or `adj_matrix.*` (ppnp), entry (i, j) the edge from i to
    j; the features are CSR under `attr_*` or `attr_matrix.*`, or dense under `attr_matrix`. A matrix without `data` is
    all ones. Adjacency entries that are not all 1 are edge weights. `labels`, `node_names`,
    `class_names` and `attr_names` are optional; so are cagat's own `edge_attr` (one row an entry of the adjacency
    matrix), `parts` (a split) and `directed`. Anything else in the file is left alone, unread.
    """
    arrays, what = read_arrays(path, _KEYS), name or path.stem
    adjacency = _matrix(what, arrays, "adjacency")
    if adjacency is None:
        raise DatasetError(f"{path}: holds no adjacency matrix (adj_indices, adj_indptr, adj_shape). Is it a graph?")
    if adjacency.shape[0] != adjacency.shape[1]:
        raise DatasetError(f"{path}: the adjacency matrix has shape {adjacency.shape}; it must be square.")
    nodes = adjacency.shape[0]
    features = _matrix(what, arrays, "attributes")
    if features is None:
        features = (
            as_float32(f"{what}: attr_matrix", arrays["attr_matrix"], 2) if "attr_matrix" in arrays else one_hot(nodes)
        )
    labels = as_int64(f"{what}: labels", arrays.get("labels", np.full(nodes, -1)), (nodes,))
    edge = adjacency.tocoo()
    return RawGraph(
        edge_index=np.stack([edge.row, edge.col]).astype(np.int64),
        features=features,
        labels=labels,
        node_names=_names(what, arrays, "node_names") or [str(node) for node in range(nodes)],
        class_names=_names(what, arrays, "class_names") or numbered_classes(what, labels),
        feature_names=_names(what, arrays, "attr_names"),
        edge_weight=None if (edge.data == 1).all() else edge.data,
        edge_attr=as_float32(f"{what}: edge_attr", arrays["edge_attr"], 2) if "edge_attr" in arrays else None,
        parts=as_int64(f"{what}: parts", arrays["parts"], (nodes,)) if "parts" in arrays else None,
        directed=bool(arrays["directed"].any()) if "directed" in arrays else False,
        name=what,
        source=f"file {path}",
        sha256=file_sha256(path),
    )


def write_npz(path: Path, graph: RawGraph, *, seal: bool = False) -> None:
    """Write a graph in the form of gnn-benchmark, which other tools read too; see :func:`read_npz`.

    The files of published graphs are known by their sum and not sealed, so that their bytes stay what they are.
    """
    nodes = graph.num_nodes
    order = np.argsort(graph.edge_index[0] * nodes + graph.edge_index[1], kind="stable")
    source, target = graph.edge_index[:, order]
    weight = np.ones(len(order)) if graph.edge_weight is None else graph.edge_weight[order]
    arrays: Arrays = {
        "adj_data": weight.astype(np.float32),
        "adj_indices": target.astype(np.int32),
        "adj_indptr": np.concatenate([[0], np.cumsum(np.bincount(source, minlength=nodes))]).astype(np.int64),
        "adj_shape": np.array([nodes, nodes], dtype=np.int64),
        "labels": graph.labels.astype(np.int64),
        "directed": np.array(graph.directed),
        **_name_arrays(graph),
    }
    if sparse.issparse(graph.features):
        arrays["attr_data"] = graph.features.data.astype(np.float32)
        arrays["attr_indices"] = graph.features.indices.astype(np.int32)
        arrays["attr_indptr"] = graph.features.indptr.astype(np.int64)
        arrays["attr_shape"] = np.array(graph.features.shape, dtype=np.int64)
    else:
        arrays["attr_matrix"] = graph.features.astype(np.float32)
    if graph.edge_attr is not None:
        arrays["edge_attr"] = graph.edge_attr[order]
    if graph.parts is not None:
        arrays["parts"] = graph.parts.astype(np.int8)
    write_arrays(path, arrays, seal=seal)


def _matrix(what: str, arrays: Arrays, kind: str) -> Any:
    """The CSR matrix under one of the prefixes of its kind, checked; `None` if there is none."""
    for prefix in _PREFIXES[kind]:
        if prefix + "indptr" in arrays:
            break
    else:
        return None
    try:
        indices, indptr, shape = (arrays[prefix + part] for part in ("indices", "indptr", "shape"))
    except KeyError as error:
        raise DatasetError(f"{what}: {prefix}indptr is there, but {error} is missing. Write the file again.") from None
    rows, columns = as_int64(f"{what}: {prefix}shape", shape, (2,)).tolist()
    return checked_csr(f"{what}, {prefix}*", arrays.get(prefix + "data"), indices, indptr, (rows, columns))


def _names(what: str, arrays: Arrays, key: str) -> list[str]:
    array = arrays.get(key)
    if array is None:
        return []
    if array.ndim != 1 or array.dtype.kind not in "SUiu":
        raise DatasetError(
            f"{what}: {key} must be a list of texts, but has type {array.dtype} and shape {array.shape}."
        )
    if array.dtype.kind == "U":
        _require_characters(what, key, array)
    try:
        texts = (name.decode() if isinstance(name, bytes) else str(name) for name in array.tolist())
        return [text.strip() for text in texts]
    except UnicodeDecodeError as error:
        raise DatasetError(f"{what}: {key} holds bytes that are not UTF-8 ({error}).") from None


def _require_characters(what: str, key: str, array: NDArray[Any]) -> None:
    """Raise unless every code in an array of texts is that of a character; Python fails on others in odd ways."""
    length = array.dtype.itemsize // 4
    if array.size * length == 0:
        return
    codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    wrong = np.flatnonzero(codes > sys.maxunicode)
    if wrong.size:
        raise DatasetError(
            f"{what}: name {wrong[0] // length} (counted from 0) of {key} holds the code {codes[wrong[0]]:#x}, which "
            "no character has. Write the names again."
        )


def _name_arrays(graph: RawGraph) -> Arrays:
    lists = {"node_names": graph.node_names, "class_names": graph.class_names, "attr_names": graph.feature_names}
    for key, names in lists.items():
        size = 4 * len(names) * max(map(len, names), default=0)
        if size > _MOST_NAME_BYTES:
            raise DatasetError(
                f"{graph.name}: {key} would take {size / 2**30:.1f} GiB, because an .npz stores every name as "
                "long as the longest one. Write a .safetensors file instead."
            )
    return {key: np.array(names, dtype=np.str_) for key, names in lists.items() if names}
