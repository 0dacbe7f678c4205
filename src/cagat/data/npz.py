"""Graphs in `.npz` files: the forms of gnn-benchmark and ppnp, and what cagat adds to the first of them."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import RawGraph, numbered, numbered_classes, one_hot
from cagat.data.validation import (
    as_csr,
    as_float32,
    as_int64,
    csr_arrays,
    file_sha256,
    require_memory,
    require_plausible,
)
from cagat.errors import DatasetError
from cagat.files import atomic_write

Arrays = dict[str, NDArray[Any]]

# NumPy's reader and writer of .npy, whose types older versions of NumPy do not tell, or tell wrongly.
_npy: Any = np.lib.format
_ADJACENCY, _ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.")
_KEYS = {
    *(prefix + part for prefix in (*_ADJACENCY, *_ATTRIBUTES) for part in ("data", "indices", "indptr", "shape")),
    *("attr_matrix", "labels", "node_names", "class_names", "attr_names", "edge_attr", "parts", "directed"),
}
# The end of an archive: a record of 22 bytes, of which the last two are the length of the comment; then the comment.
_END_RECORD, _NO_COMMENT, _DIGEST_LENGTH = b"PK\5\6", b"\0\0", b"\x40\0"


def read_npz(path: Path, *, name: str | None = None) -> RawGraph:
    """Read a graph from an `.npz`.

    The adjacency matrix is CSR under `adj_*` (gnn-benchmark) or `adj_matrix.*` (ppnp), entry (i, j) the edge from i to
    j; the features are CSR under `attr_*` or `attr_matrix.*`, or dense under `attr_matrix`. A matrix without `data` is
    all ones. Adjacency entries that are not all 1 are edge weights. `labels`, `node_names`, `class_names` and
    `attr_names` are optional; so are cagat's own `edge_attr` (one row per entry of the adjacency matrix), `parts`
    (split codes) and `directed`. Anything else in the file is never read.
    """
    arrays, what = read_arrays(path, _KEYS), name or path.stem
    adjacency = _matrix(what, arrays, _ADJACENCY)
    if adjacency is None:
        raise DatasetError(f"{path}: holds no adjacency matrix (adj_indices, adj_indptr, adj_shape). Is it a graph?")
    if adjacency.shape[0] != adjacency.shape[1]:
        raise DatasetError(f"{path}: the adjacency matrix has shape {adjacency.shape}; it must be square.")
    nodes, edges = adjacency.shape[0], adjacency.tocoo()
    features = _matrix(what, arrays, _ATTRIBUTES)
    if features is None and "attr_matrix" in arrays:
        features = as_float32(f"{what}: attr_matrix", arrays["attr_matrix"], 2)
    labels = as_int64(f"{what}: labels", arrays.get("labels", np.full(nodes, -1)), (nodes,))
    return RawGraph(
        edge_index=np.stack([edges.row, edges.col]).astype(np.int64),
        features=one_hot(nodes) if features is None else features,
        labels=labels,
        node_names=_names(what, arrays, "node_names") or numbered(nodes),
        class_names=_names(what, arrays, "class_names") or numbered_classes(what, labels),
        feature_names=_names(what, arrays, "attr_names"),
        edge_weight=None if (edges.data == 1).all() else edges.data,
        edge_attr=as_float32(f"{what}: edge_attr", arrays["edge_attr"], 2) if "edge_attr" in arrays else None,
        split_codes=as_int64(f"{what}: parts", arrays["parts"], (nodes,)) if "parts" in arrays else None,
        directed=bool(arrays["directed"].any()) if "directed" in arrays else False,
        name=what,
        source=f"file {path}",
        sha256=file_sha256(path),
    )


def write_npz(path: Path, graph: RawGraph, *, checksum: bool = True) -> None:
    """Write a graph in the form of gnn-benchmark, which other tools read too; see :func:`read_npz`.

    The files of published graphs are known by their sha256 and hold no checksum of their own.
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
        arrays |= csr_arrays(graph.features, "attr_")
    else:
        arrays["attr_matrix"] = graph.features.astype(np.float32)
    if graph.edge_attr is not None:
        arrays["edge_attr"] = graph.edge_attr[order]
    if graph.split_codes is not None:
        arrays["parts"] = graph.split_codes.astype(np.int8)
    write_arrays(path, arrays, checksum=checksum)


def read_arrays(path: Path, wanted: Iterable[str]) -> Arrays:
    """Read those of the `wanted` arrays that the archive holds; other members are not unpacked, objects refused."""
    try:
        if _is_damaged(path):
            raise DatasetError(f"{path}: is damaged or cut short, its checksum does not match. Copy or write it again.")
        with zipfile.ZipFile(path) as archive:
            keys = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            members = {key: keys[key] for key in wanted if key in keys}
            size = sum(member.file_size for member in members.values())
            require_plausible(f"{path}: its arrays", size, path.stat().st_size)
            require_memory(f"{path}: its arrays", size, "If you trust the file, use a machine with more memory.")
            return {key: _read_array(path, archive, member) for key, member in members.items()}
    except DatasetError:
        raise
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file. Check the path.") from None
    except Exception as error:  # Whatever a broken or hostile file makes the libraries raise.
        raise DatasetError(f"{path}: not a readable .npz archive ({error}). Copy or download it again.") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], *, checksum: bool = False) -> None:
    """Write an `.npz` whose bytes depend on nothing but the arrays: no times, no compression, keys in order.

    With `checksum`, the comment of the archive is the sha256 of the archive without a comment: CRCs alone would not
    notice damage to the name of an array.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for key in sorted(arrays):
            array = io.BytesIO()
            _npy.write_array(array, np.ascontiguousarray(arrays[key]), version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16
            archive.writestr(member, array.getvalue())
    content = buffer.getvalue()
    if checksum:
        content = content[:-2] + _DIGEST_LENGTH + hashlib.sha256(content).hexdigest().encode()
    atomic_write(path, content)


def _is_damaged(path: Path) -> bool:
    """Whether the checksum of an archive does not match; an archive without a comment has none."""
    content: Any = memoryview(np.memmap(path, mode="r").data)
    if content[-22:-18] == _END_RECORD and content[-2:] == _NO_COMMENT:
        return False
    digest = hashlib.sha256(content[:-66])
    digest.update(_NO_COMMENT)
    return bool(content[-66:] != _DIGEST_LENGTH + digest.hexdigest().encode())


def _read_array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    what = f"{path}, array {member.filename!r}"
    with archive.open(member) as stream:
        try:
            array: NDArray[Any] = _npy.read_array(stream, allow_pickle=False)
        except ValueError as error:
            raise DatasetError(
                f"{what}: cannot be read ({error}). Save it with numpy.savez, as numbers or texts: unpickling Python "
                "objects would execute code from the file."
            ) from error
        if array.dtype.kind not in "biufSU" or stream.read(1):  # Reading to the end also checks the CRC.
            raise DatasetError(f"{what}: has type {array.dtype}, or more bytes than its shape {array.shape} needs.")
    return array


def _matrix(what: str, arrays: Arrays, prefixes: tuple[str, ...]) -> Any:
    """The CSR matrix under one of the prefixes, checked; `None` if there is none."""
    prefix = next((prefix for prefix in prefixes if prefix + "indptr" in arrays), None)
    return None if prefix is None else as_csr(what, arrays, prefix)


def _names(what: str, arrays: Arrays, key: str) -> list[str]:
    array = arrays.get(key, np.empty(0, dtype=np.str_))
    if array.ndim != 1 or array.dtype.kind not in "SUiu":
        raise DatasetError(
            f"{what}: {key} must be a list of texts, but has type {array.dtype} and shape {array.shape}."
        )
    try:
        texts = (name.decode() if isinstance(name, bytes) else str(name) for name in array.tolist())
        return [text.strip() for text in texts]
    except (ValueError, SystemError) as error:  # The latter is Python's own for codes beyond the last character.
        raise DatasetError(
            f"{what}: {key} holds bytes that are not UTF-8, or codes that are no characters ({error}). Write it again."
        ) from None


def _name_arrays(graph: RawGraph) -> Arrays:
    lists = {"node_names": graph.node_names, "class_names": graph.class_names, "attr_names": graph.feature_names}
    for key, names in lists.items():
        what = f"{graph.name}: {key} in an .npz, which stores every name as long as the longest one,"
        size = 4 * len(names) * max(map(len, names), default=0)
        require_memory(what, size, "Write a .safetensors file instead.")
    return {key: np.array(names, dtype=np.str_) for key, names in lists.items() if names}
