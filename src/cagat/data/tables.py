"""Graphs from tables of edges, features, labels and splits, whose columns `docs/data.md` describes."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import SPLIT_NAMES, Features, RawGraph, one_hot
from cagat.data.validation import require_memory
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)

KINDS = ("edges", "features", "labels", "splits")
_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_NODE = ("node", "node_id", "id", "")
_LABEL = ("label", "class", "y")
_SPLIT = ("split", "part")
_MISSING = {"", "NA", "NaN", "nan", "null"}
_SPLIT_CODES = {"train": 1, "training": 1, "val": 2, "valid": 2, "validation": 2, "test": 3, "testing": 3}

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_LARGEST_WHOLE = 2**53  # Up to here floats hold every whole number.
_SPARSE_BELOW = 0.25  # A table with fewer entries than this that are not zero is kept as a sparse matrix.


@dataclass(frozen=True)
class Columns:
    """The columns of a table: those that hold names (of nodes, classes, ...), and those that hold numbers."""

    names: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def find_columns(kind: str, what: str, header: Sequence[str]) -> Columns:
    """The columns of a table of one of the :data:`KINDS`, by the names in its header."""
    if kind == "edges":
        lower = [column.lower() for column in header]
        ends = next((ends for ends in _ENDS if set(ends) <= set(lower)), None)
        if ends is None:
            raise DatasetError(
                f"{what}: the first line is {','.join(header)[:80]!r}. It must name the columns source,target (or "
                "src,dst or from,to), then weight and edge features if any; only numbers may start without names."
            )
        joined = tuple(header[lower.index(end)] for end in ends)
        return Columns(joined, tuple(column for column in header if column not in joined))
    node = _column(what, header, _NODE, "node")
    if kind == "features":
        others = tuple(column for column in header if column != node)
        if [column.lower() for column in others] in (["feature"], ["feature", "value"]):
            return Columns((node, others[0]), others[1:])
        return Columns((node,), others)
    names = [node, _column(what, header, *((_LABEL, "label") if kind == "labels" else (_SPLIT, "split")))]
    if kind == "labels" and any(column.lower() in _SPLIT for column in header):
        names.append(_column(what, header, _SPLIT, "split"))
    return Columns(tuple(names), ignored=tuple(column for column in header if column not in names))


def names_of_bare_edges(header: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a list of edges that starts without names: two or three numbers in the first line."""
    try:
        bare = len([float(cell) for cell in header]) in (2, 3)
    except ValueError:
        return None
    return ("source", "target", "weight")[: len(header)] if bare else None


def _column(what: str, header: Sequence[str], known: Sequence[str], role: str) -> str:
    if found := [column for name in known for column in header if column.lower() == name]:
        return found[0]
    names = ", ".join(repr(name) for name in known if name)
    raise DatasetError(
        f"{what}: no column for the {role} among {','.join(header)[:80]!r}. The first line must name the columns; "
        f"this one may be called {names}."
    )


@dataclass(frozen=True)
class Table:
    """A `pyarrow.Table`, its columns, and what to call it in errors."""

    data: Any
    columns: Columns
    what: str

    def codes(self, place: int, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
        """The distinct names in a column of names, and the code of each row; see :func:`as_codes`."""
        column = self.columns.names[place]
        return as_codes(f"{self.what}, column {column!r}", self.data[column], may_be_missing=may_be_missing)

    def numbers(self, column: str) -> NDArray[np.float32]:
        """A column of numbers; an empty cell is an error, because 0 and unknown are not the same."""
        what, values = f"{self.what}, column {column!r}", self.data[column]
        if values.null_count:
            raise DatasetError(f"{what}: {values.null_count} cells are empty. Write 0 if that is meant.")
        kind = values.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DatasetError(f"{what}: numbers are expected, but the column holds {kind}.")
        with np.errstate(over="ignore"):
            return np.asarray(values.to_numpy(), dtype=np.float32)


def as_codes(what: str, column: Any, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct names in a `pyarrow.ChunkedArray`, in order of first occurrence, and the code of each row.

    Whole numbers are names too: 7 in a Parquet file is the name 7 in a CSV file. Spaces around a name do not count. If
    rows may be without a name, their code is -1.
    """
    if pa.types.is_floating(column.type):
        column = _whole_numbers(what, column)
    if column.null_count and not may_be_missing:
        raise DatasetError(f"{what}: {column.null_count} rows are empty. Fill them in or remove these rows.")
    kind = column.type
    try:
        if not pa.types.is_dictionary(kind):
            column = column.dictionary_encode()
        column = column.unify_dictionaries().combine_chunks()
        # Of the distinct values only, since a long text may be there in every row.
        names = pc.utf8_trim_whitespace(column.dictionary.cast(pa.large_string())).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{what}: names must be texts in UTF-8 or whole numbers, not {kind} ({error}).") from error
    # Names that differ only in spaces are one, and names that no row uses are none.
    rows = names.indices.take(column.indices).dictionary_encode()
    codes = rows.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return names.dictionary.take(rows.dictionary).to_pylist(), codes


def _whole_numbers(what: str, column: Any) -> Any:
    """Pandas turns whole numbers into floats when some are missing: turn them back."""
    array = column.to_numpy()
    missing = np.isnan(array)
    whole = np.where(missing, 0, array)
    wrong = (np.abs(whole) > _LARGEST_WHOLE) | (whole != np.trunc(whole))
    if wrong.any():
        raise DatasetError(f"{what}: names must be texts or whole numbers, but one is {whole[wrong][0]}.")
    return pa.chunked_array([pa.array(whole.astype(np.int64), mask=missing)])


def sorted_names(names: list[str]) -> list[str]:
    """Names in order: by value if all are whole numbers, else as texts."""
    numeric = all(_WHOLE_NUMBER.fullmatch(name) for name in names)
    return sorted(names, key=lambda name: (int(name) if numeric else 0, name))


def places(found: Sequence[Any], names: Sequence[Any]) -> NDArray[np.int64]:
    """The place of each of the `found` among the names; -1 if it is not there."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in found], dtype=np.int64)


def graph_from_tables(
    tables: Mapping[str, Table], *, directed: bool, source: str, name: str = "graph", sha256: str = ""
) -> RawGraph:
    """Assemble a graph from a table for each of the :data:`KINDS`, of which only `edges` must be there.

    Nodes are numbered in the order of the features table, then come those only in labels, splits and edges, in this
    order. Classes and sparse features are sorted: by value if all their names are whole numbers, else as texts.
    """
    for table in tables.values():
        if table.columns.ignored:
            _log.warning("%s: columns not used: %s", table.what, ", ".join(table.columns.ignored))
    number: dict[str, int] = {}
    rows = {}
    for kind in ("features", "labels", "splits"):
        if kind in tables:
            once = kind != "features" or len(tables[kind].columns.names) == 1
            rows[kind] = node_rows(tables[kind], number, once=once)
    edges = tables["edges"]
    edge_index = np.stack([node_rows(edges, number, place) for place in (0, 1)])
    nodes = len(number)
    features, feature_names = one_hot(nodes), list[str]()
    if "features" in tables:
        features, feature_names = _feature_matrix(tables["features"], rows["features"], nodes)
    codes = split_codes(tables["splits"], 1, rows["splits"], nodes) if "splits" in tables else None
    class_names, labels = list[str](), np.full(nodes, -1, dtype=np.int64)
    if "labels" in tables:
        table = tables["labels"]
        class_names, labels = _labels(table, rows["labels"], nodes)
        if len(table.columns.names) == 3:
            if codes is not None:
                raise DatasetError(f"{table.what}: there is a split in the table of splits too. Keep one of the two.")
            codes = split_codes(table, 2, rows["labels"], nodes)
    weights = [column for column in edges.columns.numbers if column.lower() == "weight"]
    attributes = [column for column in edges.columns.numbers if column not in weights]
    return RawGraph(
        edge_index=edge_index,
        features=features,
        labels=labels,
        node_names=list(number),
        class_names=class_names,
        feature_names=feature_names,
        edge_weight=edges.numbers(weights[0]) if weights else None,
        edge_attr=np.stack([edges.numbers(column) for column in attributes], axis=1) if attributes else None,
        split_codes=codes,
        directed=directed,
        name=name,
        source=source,
        sha256=sha256,
    )


def node_rows(table: Table, number: dict[str, int], place: int = 0, *, once: bool = False) -> NDArray[np.int64]:
    """The node number of every row; new names get the next numbers."""
    names, rows = table.codes(place)
    if "" in names:
        raise DatasetError(f"{table.what}: a node has an empty name. Fill it in or remove the row.")
    if once and len(names) != len(rows):
        twice = names[int(np.bincount(rows).argmax())]
        raise DatasetError(f"{table.what}: node {twice!r} has more than one row. Keep one.")
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)[rows]


def _feature_matrix(table: Table, rows: NDArray[np.int64], nodes: int) -> tuple[Features, list[str]]:
    """One row per node, sparse or dense, and the names of the columns; `rows` are the nodes of the table's rows."""
    columns = table.columns.numbers
    if len(table.columns.names) == 2:
        found, codes = table.codes(1)
        names = sorted_names(found)
        values = table.numbers(columns[0]) if columns else np.ones(len(rows), dtype=np.float32)
        column = places(found, names)[codes]
        entries = sparse.csr_matrix((values, (rows, column)), shape=(nodes, len(names)))
        if entries.nnz != len(rows):
            twice = len(rows) - entries.nnz
            raise DatasetError(f"{table.what}: {twice} rows repeat the node and the feature of another row. Keep one.")
        return entries, names
    what = f"{table.what}: a matrix of {nodes} nodes and {len(columns)} features"
    require_memory(what, 4 * nodes * len(columns), "Write the features that are not zero as node,feature,value.")
    matrix = np.zeros((nodes, len(columns)), dtype=np.float32)
    for place, name in enumerate(columns):
        matrix[rows, place] = table.numbers(name)
    few = np.count_nonzero(matrix) < _SPARSE_BELOW * matrix.size
    return (sparse.csr_matrix(matrix) if few else matrix), list(columns)


def _labels(table: Table, rows: NDArray[np.int64], nodes: int) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the classes and the class of each node; `rows` are the nodes of the table's rows."""
    found, codes = table.codes(1, may_be_missing=True)
    names = sorted_names([name for name in found if name not in _MISSING])
    labels = np.full(nodes, -1, dtype=np.int64)
    # One place more, for the rows without any text, whose code is -1.
    labels[rows] = np.append(places(found, names), -1)[codes]
    return names, labels


def split_codes(table: Table, place: int, rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The split code of each node, by a column of names; `rows` are the nodes of the table's rows."""
    found, codes = table.codes(place, may_be_missing=True)
    if wrong := [name for name in found if name not in _MISSING and name.lower() not in _SPLIT_CODES]:
        written = ", ".join(SPLIT_NAMES)
        raise DatasetError(f"{table.what}: {wrong[0]!r} is no part of a split. Write {written} or nothing.")
    result = np.zeros(nodes, dtype=np.int64)
    result[rows] = np.array([*(_SPLIT_CODES.get(name.lower(), 0) for name in found), 0])[codes]
    return result
