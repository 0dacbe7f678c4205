"""Graphs in single files: `.npz` in the forms of gnn-benchmark and ppnp and with cagat's additions, `.safetensors`."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import SPLIT_NAMES, RawGraph, edges_of_matrix, renumbered
from cagat.data.validation import (
    as_csr,
    as_float32,
    as_int64,
    as_names,
    csr_arrays,
    file_sha256,
    require_memory,
    require_plausible,
)
from cagat.errors import CagatError, DatasetError
from cagat.files import atomic_write
from cagat.safetensors_file import read_tensors, write_tensors

Arrays = dict[str, NDArray[Any]]

_ADJACENCY, _ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.")
_NPZ_KEYS = {
    *(prefix + part for prefix in (*_ADJACENCY, *_ATTRIBUTES) for part in ("data", "indices", "indptr", "shape")),
    *("edges", "node_features", "node_labels", *(f"{part}_masks" for part in SPLIT_NAMES)),
    *("attr_matrix", "labels", "node_names", "class_names", "attr_names", "edge_attr", "parts", "directed"),
}
# The end of an archive: a record of 22 bytes, of which the last two are the length of the comment; then the comment.
_END_RECORD, _NO_COMMENT, _DIGEST_LENGTH = b"PK\5\6", b"\0\0", b"\x40\0"
_NAMES = ("node_names", "class_names", "feature_names")


def read_npz(path: Path, *, name: str | None = None) -> RawGraph:
    """Read a graph from an `.npz`.

    The adjacency matrix is CSR under `adj_*` (gnn-benchmark) or `adj_matrix.*` (ppnp), entry (i, j) the edge from i to
    j; the features are CSR under `attr_*` or `attr_matrix.*`, or dense under `attr_matrix`. A matrix without `data` is
    all ones. Adjacency entries that are not all 1 are edge weights. `labels`, `node_names`, `class_names` and
    `attr_names` are optional; so are cagat's own `edge_attr` (one row per entry of the adjacency matrix), `parts`
    (split codes) and `directed`. Or `edges` lists pairs of nodes, as in the heterophilous graphs of Yandex, with
    `node_features`, `node_labels` and masks, of which the first is the split. Anything else in the file is never read.
    Classes without names of which one is empty are numbered anew, and keep their numbers as names.
    """
    arrays = read_arrays(path, _NPZ_KEYS)
    adjacency = _matrix(path, arrays, _ADJACENCY)
    if adjacency is None and "edges" in arrays:
        fields = _edge_list_parts(path, arrays)
    elif adjacency is None:
        raise DatasetError(
            f"{path}: holds no adjacency matrix (adj_indices, adj_indptr, adj_shape) and no edges. Is it a graph?"
        )
    else:
        nodes = adjacency.shape[0]
        fields = {
            **edges_of_matrix(str(path), adjacency),
            "features": _matrix(path, arrays, _ATTRIBUTES, dense="attr_matrix"),
            "labels": as_int64(f"{path}: labels", arrays.get("labels", np.full(nodes, -1)), (nodes,)),
        }
    names = {key: _texts(path, arrays, key.replace("feature", "attr")) for key in _NAMES}
    if not names["class_names"]:
        fields["labels"], names["class_names"] = renumbered(fields["labels"])
    return _graph(path, arrays, **fields, **names, name=name)


def _edge_list_parts(path: Path, arrays: Arrays) -> dict[str, Any]:
    """The graph of an `.npz` that lists its edges, one pair of nodes in each row."""
    edges = as_int64(f"{path}: edges", arrays["edges"], (None, 2)).T
    known = [len(arrays[key]) for key in ("node_features", "node_labels") if key in arrays]
    nodes = known[0] if known else int(edges.max(initial=-1)) + 1
    labels = as_int64(f"{path}: node_labels", arrays.get("node_labels", np.full(nodes, -1)), (nodes,))
    codes = np.zeros(nodes, dtype=np.int64)
    for code, part in enumerate(SPLIT_NAMES, start=1):
        masks = np.atleast_2d(arrays.get(f"{part}_masks", np.zeros(nodes, dtype=bool)))
        if masks.dtype.kind != "b" or masks.ndim != 2 or nodes not in masks.shape:
            raise DatasetError(
                f"{path}: {part}_masks must be truth values of shape (splits, {nodes}), but has type {masks.dtype} and "
                f"shape {masks.shape}. Write one row per split."
            )
        codes[masks[0] if masks.shape[1] == nodes else masks[:, 0]] = code
    if codes.any():
        arrays["parts"] = codes
    features = _matrix(path, arrays, (), dense="node_features")
    return {"edge_index": np.ascontiguousarray(edges), "features": features, "labels": labels}


def write_npz(path: Path, graph: RawGraph, *, checksum: bool = True) -> None:
    """Write a graph in the form of gnn-benchmark, which other tools read too; see :func:`read_npz`.

    The files of published graphs are known by their sha256 and hold no checksum of their own.
    """
    nodes, order = graph.num_nodes, np.lexsort(graph.edge_index[::-1])
    source, target = graph.edge_index[:, order]
    weight = np.ones(len(order)) if graph.edge_weight is None else graph.edge_weight[order]
    starts = np.searchsorted(source, np.arange(nodes + 1))
    names = {key.replace("feature", "attr"): getattr(graph, key) for key in _NAMES}
    size = sum(4 * len(texts) * max(map(len, texts), default=0) for texts in names.values())
    what = f"{graph.name}: the names in an .npz, which stores each as long as the longest one,"
    require_memory(what, size, "Write a .safetensors file instead.")
    arrays: Arrays = {
        **csr_arrays(sparse.csr_matrix((weight, target, starts), shape=(nodes, nodes)), "adj_"),
        "labels": graph.labels.astype(np.int64),
        "directed": np.array(graph.directed),
        **{key: np.array(texts, dtype=np.str_) for key, texts in names.items() if texts},
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


def read_safetensors(path: Path) -> RawGraph:
    """Read a graph that :func:`write_safetensors` wrote."""
    try:
        tensors, _ = read_tensors(path, require_checksum=False)
    except CagatError as error:
        raise DatasetError(f"{error} Copy or write it again with cagat.data.save.") from error
    if missing := [key for key in ("edge_index", "labels", "directed", *_NAMES) if key not in tensors]:
        raise DatasetError(f"{path}: {', '.join(missing)} missing. Write it with cagat.data.save.")
    weight = tensors.get("edge_weight")
    try:
        names: Any = {key: as_names(f"{path}: {key}", json.loads(tensors[key].tobytes())) for key in _NAMES}
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: names are not readable ({error}). Write it with cagat.data.save.") from error
    return _graph(
        path,
        tensors,
        edge_index=as_int64(f"{path}: edge_index", tensors["edge_index"], (2, None)),
        edge_weight=None if weight is None else as_float32(f"{path}: edge_weight", weight),
        features=_matrix(path, tensors, ("features.",), dense="features"),
        labels=as_int64(f"{path}: labels", tensors["labels"], (None,)),
        **names,
    )


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


def _graph(path: Path, arrays: Arrays, *, name: str | None = None, **fields: Any) -> RawGraph:
    """The graph of these fields and of the arrays that both file forms have under the same key."""
    attr, codes = arrays.get("edge_attr"), arrays.get("parts")
    return RawGraph(
        edge_attr=None if attr is None else as_float32(f"{path}: edge_attr", attr, 2),
        split_codes=None if codes is None else as_int64(f"{path}: parts", codes, (None,)),
        directed="directed" in arrays and bool(arrays["directed"].any()),
        name=name or path.stem,
        source=f"file {path}",
        sha256=file_sha256(path),
        **fields,
    )


def _matrix(path: Path, arrays: Arrays, prefixes: tuple[str, ...], dense: str = "") -> Any:
    """The CSR matrix under one of the prefixes, or the dense one under its key; `None` if there is none."""
    for prefix in prefixes:
        if prefix + "indptr" in arrays:
            return as_csr(str(path), arrays, prefix)
    return as_float32(f"{path}: {dense}", arrays[dense], 2) if dense in arrays else None


def _texts(path: Path, arrays: Arrays, key: str) -> list[str]:
    array = arrays.get(key, np.empty(0, dtype=np.str_))
    if array.ndim != 1 or array.dtype.kind not in "SUiu":
        raise DatasetError(
            f"{path}: {key} must be a list of texts, but has type {array.dtype} and shape {array.shape}."
        )
    try:
        texts = (name.decode() if isinstance(name, bytes) else str(name) for name in array.tolist())
        return [text.strip() for text in texts]
    except (ValueError, SystemError) as error:  # The latter is Python's own for codes beyond the last character.
        raise DatasetError(
            f"{path}: {key} holds bytes that are not UTF-8, or codes that are no characters ({error}). Write it again."
        ) from None


def read_arrays(path: Path, wanted: Iterable[str]) -> Arrays:
    """Read those of the `wanted` arrays that an `.npz` holds; other members are not unpacked, objects refused."""
    try:
        if _is_damaged(path):
            raise DatasetError(f"{path}: is damaged or cut short, its checksum does not match. Copy or write it again.")
        arrays: Arrays = {}
        with np.load(path, allow_pickle=False) as archive:
            keys = [key for key in wanted if key in archive.files]
            size = sum(archive.zip.getinfo(f"{key}.npy").file_size for key in keys)
            require_plausible(f"{path}: its arrays", size, path.stat().st_size)
            require_memory(f"{path}: its arrays", size, "If you trust the file, use a machine with more memory.")
            for key in keys:
                try:
                    arrays[key] = archive[key]
                except ValueError as error:
                    if "Object arrays" in str(error):
                        raise DatasetError(
                            f"{path}, array '{key}.npy': cannot be read, because it is an object array: it holds "
                            "pickled Python objects, and unpickling them would execute code from the file. Save it "
                            "with numpy.savez as numbers or texts, for instance with array.astype(float)."
                        ) from error
                    raise DatasetError(
                        f"{path}, array '{key}.npy': cannot be read ({error}). Save it with numpy.savez, as numbers or "
                        "texts."
                    ) from error
                if arrays[key].dtype.kind not in "biufSU":
                    raise DatasetError(f"{path}: {key} has type {arrays[key].dtype}. Save it as numbers or texts.")
    except DatasetError:
        raise
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file. Check the path.") from None
    except Exception as error:  # Whatever a broken or hostile file makes the libraries raise.
        raise DatasetError(f"{path}: not a readable .npz archive ({error}). Copy or download it again.") from error
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], *, checksum: bool = False) -> None:
    """Write an `.npz` whose bytes depend on nothing but the arrays: no times, no compression, keys in order.

    With `checksum`, the comment of the archive is the sha256 of the archive without a comment: CRCs alone would not
    notice damage to the name of an array.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for key in sorted(arrays):
            array = io.BytesIO()
            np.save(array, np.ascontiguousarray(arrays[key]), allow_pickle=False)
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
