"""Graphs in `.safetensors` files: tensors and nothing that could be executed."""

from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.csr import checked_csr
from cagat.data.file_sha256 import file_sha256
from cagat.data.json_names import decoded_names, encoded_names
from cagat.data.numbers import as_float32, as_int64
from cagat.data.raw_graph import Features, RawGraph
from cagat.data.tensors_seal import METADATA, is_broken, require_short_head, sealed
from cagat.errors import DatasetError
from cagat.files import atomic_write

_REQUIRED = ("edge_index", "labels", "node_names", "class_names", "feature_names", "directed")
_SPARSE = ("features.data", "features.indices", "features.indptr", "features.shape")


def write_safetensors(path: Path, graph: RawGraph) -> None:
    """Write a graph; names are stored as JSON in a tensor of bytes, sparse features as the three arrays of CSR."""
    tensors: dict[str, NDArray[Any]] = {
        "edge_index": np.ascontiguousarray(graph.edge_index),
        "labels": graph.labels,
        "directed": np.array([graph.directed]),
        "node_names": encoded_names(graph.node_names),
        "class_names": encoded_names(graph.class_names),
        "feature_names": encoded_names(graph.feature_names),
    }
    if sparse.issparse(graph.features):
        tensors["features.data"] = graph.features.data
        tensors["features.indices"] = graph.features.indices.astype(np.int64)
        tensors["features.indptr"] = graph.features.indptr.astype(np.int64)
        tensors["features.shape"] = np.array(graph.features.shape, dtype=np.int64)
    else:
        tensors["features"] = np.ascontiguousarray(graph.features)
    for key in ("edge_weight", "edge_attr", "parts"):
        if (value := getattr(graph, key)) is not None:
            tensors[key] = np.ascontiguousarray(value)
    atomic_write(path, sealed(safetensors.numpy.save(tensors, METADATA)))


def read_safetensors(path: Path) -> RawGraph:
    """Read a graph that :func:`write_safetensors` wrote."""
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such file. Check the path.")
    try:
        require_short_head(path)
        if is_broken(path):
            raise DatasetError(f"{path}: is damaged or cut short, its digest does not fit. Copy or write it again.")
        tensors = safetensors.numpy.load_file(path)
    except DatasetError:
        raise
    except Exception as error:  # Whatever a broken or hostile file makes the library raise.
        raise DatasetError(f"{path}: not a readable .safetensors file ({error}). Write it again.") from error
    if missing := [key for key in _REQUIRED if key not in tensors]:
        raise DatasetError(f"{path}: {', '.join(missing)} missing. Write it with cagat.data.save.")
    what, labels = str(path), as_int64(f"{path}: labels", tensors["labels"], (None,))
    features = _features(what, tensors)
    weight, attr, parts = (tensors.get(key) for key in ("edge_weight", "edge_attr", "parts"))
    return RawGraph(
        edge_index=as_int64(f"{what}: edge_index", tensors["edge_index"], (2, None)),
        features=features,
        labels=labels,
        node_names=decoded_names(f"{what}: node_names", tensors["node_names"], len(labels)),
        class_names=decoded_names(f"{what}: class_names", tensors["class_names"], len(labels)),
        feature_names=decoded_names(f"{what}: feature_names", tensors["feature_names"], features.shape[1]),
        edge_weight=None if weight is None else as_float32(f"{what}: edge_weight", weight),
        edge_attr=None if attr is None else as_float32(f"{what}: edge_attr", attr, 2),
        parts=None if parts is None else as_int64(f"{what}: parts", parts, (len(labels),)),
        directed=bool(tensors["directed"].any()),
        name=path.stem,
        source=f"file {path}",
        sha256=file_sha256(path),
    )


def _features(what: str, tensors: dict[str, NDArray[Any]]) -> Features:
    if "features" in tensors:
        return as_float32(f"{what}: features", tensors["features"], 2)
    if missing := [key for key in _SPARSE if key not in tensors]:
        raise DatasetError(f"{what}: {', '.join(missing)} missing. Write it with cagat.data.save.")
    data, indices, indptr, shape = (tensors[key] for key in _SPARSE)
    rows, columns = as_int64(f"{what}: features.shape", shape, (2,)).tolist()
    return checked_csr(f"{what}: features", data, indices, indptr, (rows, columns))
