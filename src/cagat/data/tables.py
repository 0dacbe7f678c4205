"""Graphs from tables of edges, features, labels and splits, whose columns `docs/data.md` describes."""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import SPLIT_NAMES, Features, RawGraph
from cagat.data.validation import as_float32, require_memory
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)

KINDS = ("edges", "features", "labels", "splits")
_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_CALLED = {"node": ("node", "node_id", "id", ""), "label": ("label", "class", "y"), "split": ("split", "part")}
_MISSING = {"", "NA", "NaN", "nan", "null"}
_SPLIT_CODES = {"train": 1, "training": 1, "val": 2, "valid": 2, "validation": 2, "test": 3, "testing": 3}

_MOST_COLUMNS = 50_000
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_SPARSE_BELOW = 0.25  # A table with fewer entries than this that are not zero is kept as a sparse matrix.


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used: those that hold names (of nodes, classes, ...), and those with numbers."""

    names: tuple[str, ...]
    numbers: tuple[str, ...] = ()


def find_columns(kind: str, what: str, header: Sequence[str]) -> Columns:
    """The columns of a table of one of the :data:`KINDS`, by the names in its header; others are told of."""
    if len(header) > _MOST_COLUMNS:
        raise DatasetError(
            f"{what}: has {len(header)} columns, but no more than {_MOST_COLUMNS} are read. Use fewer; or write the "
            "features that are not zero as node,feature,value, or all of them to an .npz file."
        )
    for column, count in Counter(header).most_common(1):
        if count > 1:
            raise DatasetError(f"{what}: the column {column!r} is there twice. Give each column a name of its own.")
    known = {column.lower(): column for column in header}
    if kind == "edges":
        ends = next((ends for ends in _ENDS if known.keys() >= set(ends)), None)
        if ends is None:
            raise DatasetError(
                f"{what}: the first line is {','.join(header)[:80]!r}. It must name the columns source,target (or "
                "src,dst or from,to), then weight and edge features if any; only numbers may start without names."
            )
        names = [known[end] for end in ends]
    else:
        names = [_column(what, known, "node")]
    if kind == "features" and known.keys() - {names[0].lower()} in ({"feature"}, {"feature", "value"}):
        names.append(known["feature"])
    elif kind in ("labels", "splits"):
        names.append(_column(what, known, kind.removesuffix("s")))
        if kind == "labels" and known.keys() & set(_CALLED["split"]):
            names.append(_column(what, known, "split"))
    others = tuple(column for column in header if column not in names)
    if kind in ("edges", "features"):
        return Columns(tuple(names), others)
    if others:
        _log.warning("%s: columns not used: %s", what, ", ".join(others))
    return Columns(tuple(names))


def _column(what: str, known: Mapping[str, str], role: str) -> str:
    for name in _CALLED[role]:
        if name in known:
            return known[name]
    raise DatasetError(
        f"{what}: no column for the {role} among {','.join(known.values())[:80]!r}. The first line must name "
        f"the columns; this one may be called {', '.join(repr(name) for name in _CALLED[role] if name)}."
    )


@dataclass(frozen=True)
class Table:
    """A `pyarrow.Table`, its columns, and what to call it in errors."""

    data: Any
    columns: Columns
    what: str

    def codes(self, place: int, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
        """The distinct names in a column of names, in order of first occurrence, and the code of each row.

        Whole numbers are names too: 7 in a Parquet file is the name 7 in a CSV file. Spaces around a name do not count.
        If rows may be without a name, their code is -1.
        """
        column = self.data[self.columns.names[place]]
        what, kind = f"{self.what}, column {self.columns.names[place]!r}", column.type
        try:
            if pa.types.is_floating(kind):  # Which pandas makes of whole numbers when some are missing.
                column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
            if column.null_count and not may_be_missing:
                raise DatasetError(f"{what}: {column.null_count} rows are empty. Fill them in or remove these rows.")
            if not pa.types.is_dictionary(kind):
                column = column.dictionary_encode()
            column = column.unify_dictionaries().combine_chunks()
            # Of the distinct values only, since a long text may be there in every row.
            names = pc.utf8_trim_whitespace(column.dictionary.cast(pa.large_string())).dictionary_encode()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DatasetError(
                f"{what}: names must be texts in UTF-8 or whole numbers, not {kind} ({error})."
            ) from error
        # Names that differ only in spaces are one, and names that no row uses are none.
        rows = names.indices.take(column.indices).dictionary_encode()
        codes = rows.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return names.dictionary.take(rows.dictionary).to_pylist(), codes

    def numbers(self, column: str) -> NDArray[np.float32]:
        """A column of numbers; an empty cell is an error, because 0 and unknown are not the same."""
        what, values = f"{self.what}, column {column!r}", self.data[column]
        if values.null_count:
            raise DatasetError(f"{what}: {values.null_count} cells are empty. Write 0 if that is meant.")
        return as_float32(what, values.to_numpy())


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
    number: dict[str, int] = {}
    edges, rows = tables["edges"], {}
    for kind in (kind for kind in KINDS[1:] if kind in tables):
        once = kind != "features" or len(tables[kind].columns.names) == 1
        rows[kind] = node_rows(tables[kind], number, once=once)
    edge_index = np.stack([node_rows(edges, number, place) for place in (0, 1)])
    nodes = len(number)
    features, feature_names = None, list[str]()
    if "features" in tables:
        features, feature_names = _feature_matrix(tables["features"], rows["features"], nodes)
    class_names, labels = list[str](), np.full(nodes, -1, dtype=np.int64)
    if "labels" in tables:
        found, codes = tables["labels"].codes(1, may_be_missing=True)
        class_names = sorted_names([name for name in found if name not in _MISSING])
        # One place more, for the rows without any text, whose code is -1.
        labels[rows["labels"]] = np.append(places(found, class_names), -1)[codes]
    splits = [kind for kind in rows if kind == "splits" or len(tables[kind].columns.names) == 3]
    if len(splits) > 1:
        what = tables["labels"].what
        raise DatasetError(f"{what}: there is a split in the table of splits too. Keep one of the two.")
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
        split_codes=split_codes(tables[splits[0]], rows[splits[0]], nodes) if splits else None,
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


def split_codes(table: Table, rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The split code of each node, by the last column of names; `rows` are the nodes of the table's rows."""
    found, codes = table.codes(-1, may_be_missing=True)
    if wrong := [name for name in found if name not in _MISSING and name.lower() not in _SPLIT_CODES]:
        written = ", ".join(SPLIT_NAMES)
        raise DatasetError(f"{table.what}: {wrong[0]!r} is no part of a split. Write {written} or nothing.")
    result = np.zeros(nodes, dtype=np.int64)
    result[rows] = np.array([*(_SPLIT_CODES.get(name.lower(), 0) for name in found), 0])[codes]
    return result
