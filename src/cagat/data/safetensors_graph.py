"""Graphs in `.safetensors` files: tensors and nothing that could be executed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import RawGraph
from cagat.data.validation import as_csr, as_float32, as_int64, as_names, csr_arrays, file_sha256, require_memory
from cagat.errors import CagatError, DatasetError
from cagat.safetensors_file import read_tensors, write_tensors

_NAMES = ("node_names", "class_names", "feature_names")
_REQUIRED = ("edge_index", "labels", "directed", *_NAMES)
# A short text takes up to twenty times the bytes that it has in the file.
_MEMORY_PER_BYTE = 20


def write_safetensors(path: Path, graph: RawGraph) -> None:
    """Write a graph; names are stored as JSON in a tensor of bytes, sparse features as the arrays of CSR."""
    is_sparse = sparse.issparse(graph.features)
    tensors = {
        "edge_index": graph.edge_index,
        "labels": graph.labels,
        "directed": np.array([graph.directed]),
        "edge_weight": graph.edge_weight,
        "edge_attr": graph.edge_attr,
        "parts": graph.split_codes,
        **(csr_arrays(graph.features, "features.") if is_sparse else {"features": graph.features}),
    }
    for key in _NAMES:
        names = json.dumps(getattr(graph, key), ensure_ascii=False)
        tensors[key] = np.frombuffer(names.encode(), dtype=np.uint8)
    write_tensors(path, {key: value for key, value in tensors.items() if value is not None}, {})


def read_safetensors(path: Path) -> RawGraph:
    """Read a graph that :func:`write_safetensors` wrote."""
    try:
        tensors, _ = read_tensors(path, require_checksum=False)
    except CagatError as error:
        raise DatasetError(f"{error} Copy or write it again with cagat.data.save.") from error
    if missing := [key for key in _REQUIRED if key not in tensors]:
        raise DatasetError(f"{path}: {', '.join(missing)} missing. Write it with cagat.data.save.")
    labels = as_int64(f"{path}: labels", tensors["labels"], (None,))
    features, weight, attr, codes = (tensors.get(key) for key in ("features", "edge_weight", "edge_attr", "parts"))
    return RawGraph(
        edge_index=as_int64(f"{path}: edge_index", tensors["edge_index"], (2, None)),
        features=as_csr(str(path), tensors, "features.")
        if features is None
        else as_float32(f"{path}: features", features, 2),
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


def _names(what: str, array: NDArray[Any]) -> list[str]:
    require_memory(f"{what}: reading {array.nbytes} bytes of names", _MEMORY_PER_BYTE * array.nbytes, "Shorten them.")
    try:
        return as_names(what, json.loads(array.tobytes()))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{what} is not readable ({error}). Write it with cagat.data.save.") from error
