"""Graphs in `.safetensors` files: tensors and nothing that could be executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import Features, RawGraph
from cagat.data.validation import as_csr, as_float32, as_int64, file_sha256, require_memory
from cagat.errors import CagatError, DatasetError
from cagat.safetensors_file import read_tensors, write_tensors

_NAMES = ("node_names", "class_names", "feature_names")
_REQUIRED = ("edge_index", "labels", "directed", *_NAMES)
_SPARSE = ("features.data", "features.indices", "features.indptr", "features.shape")
# A short text takes up to twenty times the bytes that it has in the file.
_MEMORY_PER_BYTE = 20


def write_safetensors(path: Path, graph: RawGraph) -> None:
    """Write a graph; names are stored as JSON in a tensor of bytes, sparse features as the arrays of CSR."""
    tensors: dict[str, NDArray[Any]] = {
        "edge_index": graph.edge_index,
        "labels": graph.labels,
        "directed": np.array([graph.directed]),
    }
    for key in _NAMES:
        names = json.dumps(getattr(graph, key), ensure_ascii=False)
        tensors[key] = np.frombuffer(names.encode(), dtype=np.uint8)
    if sparse.issparse(graph.features):
        kinds = zip(_SPARSE, (np.float32, np.int64, np.int64, np.int64), strict=True)
        tensors |= {
            key: np.asarray(getattr(graph.features, key.removeprefix("features.")), dtype=kind) for key, kind in kinds
        }
    else:
        tensors["features"] = graph.features
    optional = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr, "parts": graph.split_codes}
    tensors |= {key: value for key, value in optional.items() if value is not None}
    write_tensors(path, tensors, {})


def read_safetensors(path: Path) -> RawGraph:
    """Read a graph that :func:`write_safetensors` wrote."""
    try:
        tensors, _ = read_tensors(path, require_checksum=False)
    except CagatError as error:
        raise DatasetError(f"{error} Copy or write it again with cagat.data.save.") from error
    _require(path, tensors, _REQUIRED)
    labels = as_int64(f"{path}: labels", tensors["labels"], (None,))
    weight, attr, codes = (tensors.get(key) for key in ("edge_weight", "edge_attr", "parts"))
    return RawGraph(
        edge_index=as_int64(f"{path}: edge_index", tensors["edge_index"], (2, None)),
        features=_features(path, tensors),
        labels=labels,
        **{key: _names(f"{path}: {key}", tensors[key]) for key in _NAMES},
        edge_weight=None if weight is None else as_float32(f"{path}: edge_weight", weight),
        edge_attr=None if attr is None else as_float32(f"{path}: edge_attr", attr, 2),
        split_codes=None if codes is None else as_int64(f"{path}: parts", codes, (len(labels),)),
        directed=bool(tensors["directed"].any()),
        name=path.stem,
        source=f"file {path}",
        sha256=file_sha256(path),
    )


def _require(path: Path, tensors: dict[str, NDArray[Any]], keys: tuple[str, ...]) -> None:
    if missing := [key for key in keys if key not in tensors]:
        raise DatasetError(f"{path}: {', '.join(missing)} missing. Write it with cagat.data.save.")


def _features(path: Path, tensors: dict[str, NDArray[Any]]) -> Features:
    if "features" in tensors:
        return as_float32(f"{path}: features", tensors["features"], 2)
    _require(path, tensors, _SPARSE)
    data, indices, indptr, shape = (tensors[key] for key in _SPARSE)
    rows, columns = as_int64(f"{path}: features.shape", shape, (2,)).tolist()
    return as_csr(f"{path}: features", data, indices, indptr, (rows, columns))


def _names(what: str, array: NDArray[Any]) -> list[str]:
    require_memory(f"{what}: reading {array.nbytes} bytes of names", _MEMORY_PER_BYTE * array.nbytes, "Shorten them.")
    try:
        names = json.loads(array.tobytes())
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{what} is not readable ({error}). Write it with cagat.data.save.") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{what} must be a list of texts in JSON. Write it with cagat.data.save.")
    return names
