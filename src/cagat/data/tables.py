"""Graphs from tables of edges, features, labels and splits, whose columns `docs/reference/data.md` describes."""

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

from cagat.data.columns import KINDS, Columns, TableOptions
from cagat.data.graph import SPLIT_NAMES, Features, RawGraph
from cagat.data.validation import as_float32, require_memory
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)

MISSING = {"", "NA", "NaN", "nan", "null"}
"""Texts that are no label."""

SPLIT_CODES = {"train": 1, "training": 1, "val": 2, "valid": 2, "validation": 2, "test": 3, "testing": 3}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_NO_FEATURES: dict[str, Any] = {"features": None}
_STRANGE = {
    "edges": "Their features are 0, unless a trained model knows them: add rows for them, or correct their names",
    "labels": "Nothing else is known of them: correct their names, or remove these rows",
}
_SPARSE_BELOW = 0.25  # A table with fewer entries than this that are not zero is kept as a sparse matrix.


@dataclass(frozen=True)
class Table:
    """A `pyarrow.Table`, its columns, and what to call it in errors."""

    data: Any
    columns: Columns
    what: str

    def codes(self, index: int, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
        """The distinct names in a column of names, in order of first occurrence, and the code of each row.

        Whole numbers are names too: 7 in a Parquet file is the name 7 in a CSV file. Spaces around a name do not count.
        If rows may be without a name, their code is -1.
        """
        column = self.data[self.columns.names[index]]
        what, kind = f"{self.what}, column {self.columns.names[index]!r}", column.type
        try:
            if pa.types.is_floating(kind):  # Which pandas makes of whole numbers when some are missing.
                column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
            if column.null_count and not may_be_missing:
                raise DatasetError(
                    f"{what}: {column.null_count} rows are empty, the first being row {_first_gap(column)}. Fill them "
                    "in or remove these rows."
                )
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
            raise DatasetError(
                f"{what}: {values.null_count} cells are empty, the first in row {_first_gap(values)}. Write 0 if that "
                "is meant."
            )
        return as_float32(what, values.to_numpy())

    def is_numeric(self, columns: Sequence[str]) -> bool:
        """Whether all cells of the columns are numbers, without a gap."""
        return all(_is_numeric(self.data[column]) for column in columns)

    def frame(self) -> Any:
        """The columns of values as a pandas frame."""
        columns = {}
        for name in self.columns.values:
            column = self.data[name]
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if pa.types.is_date(column.type):
                column = column.cast(pa.timestamp("ms"))
            elif pa.types.is_decimal(column.type):
                column = column.cast(pa.float64())
            columns[name] = column.to_pandas()
        import pandas as pd

        return pd.DataFrame(columns)


def _first_gap(column: Any) -> int:
    """The row of the first gap, counted from 1 without the names of columns."""
    return int(pc.index(column.is_null(), True).as_py()) + 1


def _is_numeric(column: Any) -> bool:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)) or column.null_count:
        return False
    return not (pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py())


def sorted_names(names: list[str]) -> list[str]:
    """Names in order: by value if all are whole numbers, else as texts."""
    numeric = all(_WHOLE_NUMBER.fullmatch(name) for name in names)
    return sorted(names, key=lambda name: (int(name) if numeric else 0, name))


def positions(found: Sequence[Any], names: Sequence[Any]) -> NDArray[np.int64]:
    """The position of each of the `found` among the names; -1 if it is not there."""
    position = {name: number for number, name in enumerate(names)}
    return np.array([position.get(name, -1) for name in found], dtype=np.int64)


def graph_from_tables(
    tables: Mapping[str, Table],
    options: TableOptions | None = None,
    *,
    directed: bool,
    source: str,
    name: str = "graph",
    sha256: str = "",
) -> RawGraph:
    """Assemble a graph from a table for each of the :data:`KINDS`, of which only `edges` must be there.

    Nodes are numbered in the order of the features table, then come those only in labels, splits and edges, in this
    order. Classes and sparse features are sorted: by value if all their names are whole numbers, else as texts.
    """
    number: dict[str, int] = {}
    if "labels" not in tables and "features" in tables and tables["features"].columns.labels:
        both = tables["features"]
        columns = Columns((both.columns.names[0], *both.columns.labels))
        tables = {**tables, "labels": Table(both.data, columns, both.what)}
    edges, rows = tables["edges"], {}
    for kind in (kind for kind in KINDS[1:] if kind in tables):
        once = kind != "features" or len(tables[kind].columns.names) == 1
        rows[kind] = node_rows(tables[kind], number, once=once)
    edge_index = np.stack([node_rows(edges, number, index) for index in (0, 1)])
    nodes = len(number)
    _check_names(tables, rows | {"edges": edge_index.T}, list(number))
    features = _NO_FEATURES
    if "features" in tables:
        features = _read_features(tables["features"], rows["features"], nodes, options or TableOptions())
    class_names, labels = list[str](), np.full(nodes, -1, dtype=np.int64)
    if "labels" in tables:
        found, codes = tables["labels"].codes(1, may_be_missing=True)
        class_names = sorted_names([name for name in found if name not in MISSING])
        if "-1" in class_names and len(class_names) > 2:
            told = "%s: -1 is taken for a class like the others. If it means unlabelled, leave these labels empty."
            _log.warning(told, tables["labels"].what)
        # One element more, for the rows without any text, whose code is -1.
        labels[rows["labels"]] = np.append(positions(found, class_names), -1)[codes]
    splits = [kind for kind in rows if kind == "splits" or len(tables[kind].columns.names) == 3]
    if len(splits) > 1:
        what = tables["labels"].what
        raise DatasetError(f"{what}: there is a split in the table of splits too. Keep one of the two.")
    weights = [column for column in edges.columns.values if column.lower() == "weight"]
    attributes = [column for column in edges.columns.values if column not in weights]
    return RawGraph(
        edge_index=edge_index,
        **features,
        labels=labels,
        node_names=list(number),
        class_names=class_names,
        edge_weight=edges.numbers(weights[0]) if weights else None,
        edge_attr=np.stack([edges.numbers(column) for column in attributes], axis=1) if attributes else None,
        split_codes=split_codes(tables[splits[0]], rows[splits[0]], nodes) if splits else None,
        directed=directed,
        name=name,
        source=source,
        sha256=sha256,
    )


def _check_names(tables: Mapping[str, Table], rows: Mapping[str, NDArray[np.int64]], names: list[str]) -> None:
    """Raise if a table of edges or labels is about other nodes altogether than the tables before it; tell of some."""
    seen, others = np.zeros(len(names), dtype=bool), list[str]()
    for kind in ("features", "edges", "labels"):
        if kind not in rows or len(rows[kind]) == 0:
            continue
        found, what = rows[kind].reshape(len(rows[kind]), -1), tables[kind].what
        is_strange = ~seen[found]
        if others and is_strange.all():
            raise DatasetError(
                f"{what}: none of its nodes is in {' or '.join(others)}. Row 1 is about {names[found[0, 0]]!r}, but "
                f"nodes there are called {names[int(seen.argmax())]!r} and so on. Use the same names in all tables, or "
                "name the right column with --node."
            )
        if others and is_strange.any():
            row, end = np.argwhere(is_strange)[0]
            count, column = len(np.unique(found[is_strange])), tables[kind].columns.names[end]
            _log.info(
                "%s: nodes without a row in %s: %d, the first being %r in row %d, column %r. %s.",
                *(what, " or ".join(others), count, names[found[row, end]], row + 1, column, _STRANGE[kind]),
            )
        seen[found] = True
        others.append(what)


def node_rows(table: Table, number: dict[str, int], index: int = 0, *, once: bool = False) -> NDArray[np.int64]:
    """The node number of every row; new names get the next numbers."""
    names, rows = table.codes(index)
    if "" in names:
        row = int((rows == names.index("")).argmax()) + 1
        raise DatasetError(f"{table.what}: a node has an empty name in row {row}. Fill it in or remove the row.")
    if once and len(names) != len(rows):
        most = int(np.bincount(rows).argmax())
        first, second = np.flatnonzero(rows == most)[:2] + 1
        raise DatasetError(
            f"{table.what}: node {names[most]!r} has more than one row: {first} and {second}, for instance. Keep one."
        )
    return np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)[rows]


def _read_features(table: Table, rows: NDArray[np.int64], nodes: int, options: TableOptions) -> dict[str, Any]:
    """What a graph holds about its features; `rows` are the nodes of the table's rows."""
    described = np.zeros(nodes, dtype=bool)
    described[rows] = True
    about: dict[str, Any] = {"described": described}
    if len(table.columns.names) == 2:
        features, names, about["duplicate_entries"] = _sparse_features(table, rows, nodes)
        return about | {"features": features, "feature_names": names}
    names = [column for column in table.columns.values if options.kinds.get(column) != "drop"]
    if not names:  # A list of nodes, perhaps with their labels.
        return _NO_FEATURES
    is_plain = not options.encodes and options.kinds.keys() <= set(table.columns.values)
    if is_plain and table.is_numeric(names):
        values: Any = (table.numbers(column) for column in names)
    else:
        from cagat.data.encoding import TableEncoder

        frame = table.frame()
        encoder = options.encoder or TableEncoder.fit(frame, options.kinds, what=table.what)
        values, names, about["encoder"] = encoder.transform(frame, what=table.what).T, encoder.names, encoder
    what = f"{table.what}: a matrix of {nodes} nodes and {len(names)} features"
    require_memory(what, 4 * nodes * len(names), "Write the features that are not zero as node,feature,value.")
    matrix = np.zeros((nodes, len(names)), dtype=np.float32)
    for index, column in enumerate(values):
        matrix[rows, index] = column
    few = np.count_nonzero(matrix) < _SPARSE_BELOW * matrix.size
    return about | {"features": sparse.csr_matrix(matrix) if few else matrix, "feature_names": list(names)}


def _sparse_features(table: Table, rows: NDArray[np.int64], nodes: int) -> tuple[Features, list[str], int]:
    """The matrix of a table of node, feature and value, its columns' names, and how many rows repeat another one.

    As edge features are, values of the same node and feature are averaged.
    """
    found, codes = table.codes(1)
    names = sorted_names(found)
    columns = table.columns.values
    values = table.numbers(columns[0]) if columns else np.ones(len(rows), dtype=np.float32)
    cells = (rows, positions(found, names)[codes])
    entries = sparse.csr_matrix((values, cells), shape=(nodes, len(names)))
    twice = len(rows) - entries.nnz
    if twice:
        counts = sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), cells), shape=entries.shape)
        entries.data /= counts.data
    return entries, names, twice


def split_codes(table: Table, rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The split code of each node, by the last column of names; `rows` are the nodes of the table's rows."""
    found, codes = table.codes(-1, may_be_missing=True)
    if wrong := [name for name in found if name not in MISSING and name.lower() not in SPLIT_CODES]:
        written = ", ".join(SPLIT_NAMES)
        raise DatasetError(f"{table.what}: {wrong[0]!r} is no part of a split. Write {written} or nothing.")
    result = np.zeros(nodes, dtype=np.int64)
    result[rows] = np.array([*(SPLIT_CODES.get(name.lower(), 0) for name in found), 0])[codes]
    return result
