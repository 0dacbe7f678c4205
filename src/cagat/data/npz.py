"""Graphs in `.npz` files: the forms of gnn-benchmark and ppnp, and what cagat adds to the first of them."""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import RawGraph, numbered, numbered_classes, one_hot
from cagat.data.validation import as_csr, as_float32, as_int64, file_sha256, require_memory, require_plausible
from cagat.errors import DatasetError
from cagat.files import atomic_write

Arrays = dict[str, NDArray[Any]]

# NumPy's reader and writer of .npy, whose types older versions of NumPy do not tell, or tell wrongly.
_npy: Any = np.lib.format
_MATRIX = ("data", "indices", "indptr", "shape")
_ADJACENCY, _ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.")
_KEYS = {
    *(prefix + part for prefix in (*_ADJACENCY, *_ATTRIBUTES) for part in _MATRIX),
    *("attr_matrix", "labels", "node_names", "class_names", "attr_names", "edge_attr", "parts", "directed"),
}
_MOST_NAME_BYTES = 2**30
_DIGEST_BYTES, _COMMENT_LENGTH_BYTES, _END_RECORD = 64, 2, b"PK\5\6"
_BLOCK = 2**20


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
        kinds = zip(_MATRIX, (np.float32, np.int32, np.int64, np.int64), strict=True)
        arrays |= {f"attr_{part}": np.asarray(getattr(graph.features, part), dtype=kind) for part, kind in kinds}
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
        content = content[:-_COMMENT_LENGTH_BYTES] + _comment(hashlib.sha256(content).hexdigest())
    atomic_write(path, content)


def _comment(digest: str) -> bytes:
    return _DIGEST_BYTES.to_bytes(_COMMENT_LENGTH_BYTES, "little") + digest.encode()


def _is_damaged(path: Path) -> bool:
    """Whether the checksum of an archive does not match; an archive without a comment has none."""
    no_comment = bytes(_COMMENT_LENGTH_BYTES)
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 22))
        end = stream.read()
        if end.startswith(_END_RECORD) and end.endswith(no_comment):
            return False
        digest, left = hashlib.sha256(), max(0, size - _COMMENT_LENGTH_BYTES - _DIGEST_BYTES)
        stream.seek(0)
        while block := stream.read(min(left, _BLOCK)):
            digest.update(block)
            left -= len(block)
        digest.update(no_comment)
        return stream.read() != _comment(digest.hexdigest())


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
    if prefix is None:
        return None
    if missing := [prefix + part for part in _MATRIX[1:] if prefix + part not in arrays]:
        raise DatasetError(f"{what}: {', '.join(missing)} missing. Write the file again.")
    data, indices, indptr, shape = (arrays.get(prefix + part) for part in _MATRIX)
    rows, columns = as_int64(f"{what}: {prefix}shape", np.asarray(shape), (2,)).tolist()
    return as_csr(f"{what}, {prefix}*", data, indices, indptr, (rows, columns))


def _names(what: str, arrays: Arrays, key: str) -> list[str]:
    array = arrays.get(key)
    if array is None:
        return []
    if array.ndim != 1 or array.dtype.kind not in "SUiu":
        raise DatasetError(
            f"{what}: {key} must be a list of texts, but has type {array.dtype} and shape {array.shape}."
        )
    try:
        texts = (name.decode() if isinstance(name, bytes) else str(name) for name in array.tolist())
        return [text.strip() for text in texts]
    except (ValueError, SystemError) as error:  # The latter is Python's own for codes beyond the last character.
        raise DatasetError(
            f"{what}: {key} holds bytes that are not UTF-8, or codes that are no characters ({error}). Write the names "
            "again."
        ) from None


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
