"""Graphs in `.safetensors` files: tensors and nothing that could be executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.csr import as_float32, checked_csr
from cagat.data.file_sha256 import file_sha256
from cagat.data.raw_graph import RawGraph
from cagat.data.whole_file import written_whole
from cagat.errors import DatasetError

_REQUIRED = ("edge_index", "labels", "node_names", "class_names", "feature_names", "directed")


def write_safetensors(path: Path, graph: RawGraph) -> None:
    """Write a graph; names are stored as JSON in a tensor of bytes, sparse features as the three arrays of CSR."""
    tensors: dict[str, NDArray[Any]] = {
        "edge_index": np.ascontiguousarray(graph.edge_index),
        "labels": graph.labels,
        "directed": np.array([graph.directed]),
        "node_names": _encoded(graph.node_names),
        "class_names": _encoded(graph.class_names),
        "feature_names": _encoded(graph.feature_names),
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
    written_whole(path, lambda stream: stream.write(safetensors.numpy.save(tensors, {"format": "cagat"})))


def read_safetensors(path: Path) -> RawGraph:
    """Read a graph that :func:`write_safetensors` wrote."""
    try:
        tensors = safetensors.numpy.load_file(path)
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file. Check the path.") from None
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, OSError) as error:
        raise DatasetError(f"{path}: not a readable .safetensors file ({error}). Write it again.") from error
    if missing := [key for key in _REQUIRED if key not in tensors]:
        raise DatasetError(f"{path}: {', '.join(missing)} missing. Write it with cagat.data.save.")
    labels, parts = tensors["labels"], tensors.get("parts")
    for key, array in (("labels", labels), ("parts", labels if parts is None else parts)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise DatasetError(f"{path}: {key} must be one integer a node, but have shape {array.shape}.")
    edge_index = tensors["edge_index"]
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise DatasetError(
            f"{path}: edge_index must be integers of shape (2, edges), but has shape {edge_index.shape}."
        )
    return RawGraph(
        edge_index=edge_index.astype(np.int64),
        features=_features(path, tensors),
        labels=labels.astype(np.int64),
        node_names=_decoded(path, tensors["node_names"]),
        class_names=_decoded(path, tensors["class_names"]),
        feature_names=_decoded(path, tensors["feature_names"]),
        edge_weight=_floats(path, tensors, "edge_weight", 1),
        edge_attr=_floats(path, tensors, "edge_attr", 2),
        parts=None if parts is None else parts.astype(np.int8),
        directed=bool(tensors["directed"].any()),
        name=path.stem,
        source=f"file {path}",
        sha256=file_sha256(path),
    )


def _features(path: Path, tensors: dict[str, NDArray[Any]]) -> Any:
    if "features.indptr" not in tensors:
        features = _floats(path, tensors, "features", 2)
        if features is None:
            raise DatasetError(f"{path}: features missing. Write it with cagat.data.save.")
        return features
    try:
        data, indices, indptr, shape = (tensors[f"features.{part}"] for part in ("data", "indices", "indptr", "shape"))
        rows, columns = (int(length) for length in shape)
    except (KeyError, ValueError, TypeError) as error:
        raise DatasetError(f"{path}: the sparse features are not complete ({error}).") from error
    return checked_csr(f"{path}, features", data, indices, indptr, (rows, columns))


def _floats(path: Path, tensors: dict[str, NDArray[Any]], key: str, dimensions: int) -> NDArray[np.float32] | None:
    array = tensors.get(key)
    if array is None:
        return None
    if array.ndim != dimensions:
        raise DatasetError(f"{path}: {key} must have {dimensions} dimensions, but has shape {array.shape}.")
    return as_float32(f"{path}, {key}", array)


def _encoded(names: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(names, ensure_ascii=False).encode(), dtype=np.uint8)


def _decoded(path: Path, array: NDArray[Any]) -> list[str]:
    try:
        names = json.loads(array.tobytes())
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: names are not readable ({error}).") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{path}: names must be a list of texts.")
    return names
