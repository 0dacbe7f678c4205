"""Tables of a graph that memory cannot hold: read block by block, and put in order on disk."""

import csv
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from cagat.data.columns import Columns, find_columns
from cagat.data.table_files import folder_files
from cagat.data.tables import MISSING, SPLIT_CODES, sorted_names
from cagat.data.validation import file_sha256
from cagat.errors import DatasetError
from cagat.files import atomic_write, disk_errors, size_of, take_room
from cagat.memory import require_memory
from cagat.parts.whole_graph import MatrixRows, WholeGraph

_logger = logging.getLogger(__name__)

_ROWS = 2**20
_CSV_BYTES = 2**25
_BUCKET_ENTRIES = 2**23
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_DONE = "rows.json"
# Integers for each node that are in memory at once.
_BYTES_PER_NODE = 80


@dataclass(frozen=True)
class _Table:
    """A file of a graph, and which of its columns are used."""

    path: Path
    columns: Columns

    def blocks(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        """Some of its columns, so many rows at a time."""
        try:
            if self.path.suffix.lower() == ".parquet":
                for batch in pyarrow.parquet.ParquetFile(self.path).iter_batches(_ROWS, columns=list(types)):
                    yield batch.cast(pa.schema(list(types.items())))
                return
            with pyarrow.csv.open_csv(
                self.path,
                pyarrow.csv.ReadOptions(block_size=_CSV_BYTES),
                pyarrow.csv.ParseOptions(delimiter=_DELIMITERS[self.path.suffix.lower()]),
                pyarrow.csv.ConvertOptions(
                    column_types=dict(types),
                    include_columns=list(types),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            ) as reader:
                yield from reader
        except pa.ArrowException as error:
            raise DatasetError(
                f"{self.path}: {str(error).splitlines()[0]}. To be read in blocks, nodes must be called by whole "
                "numbers from 0 on, and features must be numbers; or use --method metis, which reads all at once."
            ) from error

    def nodes(self, batch: pa.RecordBatch, column: str) -> NDArray[np.int64]:
        """The nodes of a column."""
        values = batch.column(column)
        if values.null_count:
            raise DatasetError(
                f"{self.path}, column {column!r}: {values.null_count} rows are empty. Remove these rows."
            )
        nodes: NDArray[np.int64] = values.to_numpy(zero_copy_only=False)
        if len(nodes) and nodes.min() < 0:
            raise DatasetError(
                f"{self.path}, column {column!r}: node {nodes.min()} is below 0. Number nodes from 0 on."
            )
        return nodes


@dataclass(frozen=True)
class Tables:
    """The tables of a graph in a directory, of which none is read whole."""

    folder: Path
    edges: _Table
    features: _Table
    labels: _Table | None

    @classmethod
    def of(cls, folder: Path) -> "Tables":
        """Find the tables and their columns."""
        paths = folder_files(folder)
        if "features" not in paths:
            raise DatasetError(f"{folder}: to be read in blocks, a graph needs a table of features, one row per node.")
        if "splits" in paths:
            raise DatasetError(f"{paths['splits']}: write the split beside the labels, as a column `split`.")
        found = {
            kind: _Table(path, find_columns(kind, str(path), _header(path), labelled="labels" not in paths))
            for kind, path in paths.items()
        }
        features, labels = found["features"], found.get("labels")
        if len(features.columns.names) == 2:
            raise DatasetError(
                f"{features.path}: to be read in blocks, features must be columns, one row per node; or use --method "
                "metis, which reads all at once."
            )
        if labels is None and features.columns.labels:
            labels = _Table(features.path, Columns((*features.columns.names, *features.columns.labels)))
        return cls(folder, found["edges"], features, labels)

    def digest(self) -> str:
        """A digest of the files."""
        paths = {self.edges.path, self.features.path, *(() if self.labels is None else (self.labels.path,))}
        sums = "".join(f"{file_sha256(path)}  {path.name}\n" for path in sorted(paths))
        return hashlib.sha256(sums.encode()).hexdigest()

    def graph(self, work: Path, digest: str) -> WholeGraph:
        """Put rows and features in order in files of a directory, unless they are there already."""
        with disk_errors(work):
            if not (work / _DONE).exists():
                nodes = self._count()
                require_memory(
                    _BYTES_PER_NODE * nodes,
                    f"{self.folder}: a graph whose nodes are numbered up to {nodes - 1}",
                    "Number nodes from 0 on, without gaps.",
                )
                self._write_features(work, nodes)
                self._write_rows(work, nodes)
                atomic_write(work / _DONE, json.dumps({"nodes": nodes}))
        ptr = np.load(work / "ptr.npy")
        values = np.load(work / "value.npy", mmap_mode="r") if (work / "value.npy").exists() else None
        labels, codes, names = self._labels(len(ptr) - 1)
        return WholeGraph(
            name=self.folder.resolve().name,
            source=digest,
            rows=MatrixRows(ptr, np.load(work / "col.npy", mmap_mode="r"), values),
            rows_t=None,
            features=np.load(work / "x.npy", mmap_mode="r"),
            labels=labels,
            split_codes=codes,
            node_names=None,
            class_names=names,
            feature_names=list(self.features.columns.values),
        )

    def _edge_blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]]:
        ends, weights = self.edges.columns.names, self._weights()
        types = dict.fromkeys(ends, pa.int64()) | dict.fromkeys(weights, pa.float32())
        for batch in self.edges.blocks(types):
            source, target = (self.edges.nodes(batch, end) for end in ends)
            weight = batch.column(weights[0]).to_numpy(zero_copy_only=False) if weights else None
            if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all()):
                raise DatasetError(f"{self.edges.path}: weights must be numbers that are not negative. Correct them.")
            kept = source != target if weight is None else (source != target) & (weight > 0)
            yield source[kept], target[kept], None if weight is None else weight[kept]

    def _weights(self) -> list[str]:
        return [column for column in self.edges.columns.values if column.lower() == "weight"]

    def _count(self) -> int:
        """How many nodes there are: one more than the largest number in any table."""
        most = -1
        for table in (self.features, *(() if self.labels is None else (self.labels,))):
            column = table.columns.names[0]
            for batch in table.blocks({column: pa.int64()}):
                most = max(most, int(table.nodes(batch, column).max(initial=-1)))
        for source, target, _ in self._edge_blocks():
            most = max(most, int(source.max(initial=-1)), int(target.max(initial=-1)))
        return most + 1

    def _write_rows(self, work: Path, nodes: int) -> None:
        """The rows of A, columns ascending: edges go into buckets of rows first, and then each bucket into order."""
        degree = np.zeros(nodes, dtype=np.int64)
        for source, target, _ in self._edge_blocks():
            degree += np.bincount(source, minlength=nodes) + np.bincount(target, minlength=nodes)
        before = np.concatenate([[0], np.cumsum(degree)])
        bounds = np.array(MatrixRows(before, before).blocks(_BUCKET_ENTRIES))
        files = [work / f"bucket-{number:04}" for number in range(len(bounds) - 1)]
        for path in files:
            path.write_bytes(b"")  # What a process left behind that was cut off.
        weighted = bool(self._weights())
        # A key says row and column, and sorts as they do.
        kind = np.dtype([("key", "i8"), *([("there", "f4"), ("back", "f4")] if weighted else [])])
        for source, target, weight in self._edge_blocks():
            block = np.zeros(2 * len(source), dtype=kind)
            block["key"] = np.concatenate([target * nodes + source, source * nodes + target])
            if weight is not None:
                block["there"][: len(source)], block["back"][len(source) :] = weight, weight
            block = _sorted(block)
            bounds_in_block = np.searchsorted(block["key"], bounds * nodes)
            for path, start, stop in zip(files, bounds_in_block[:-1], bounds_in_block[1:], strict=True):
                if stop > start:
                    with path.open("ab") as stream:
                        stream.write(block[start:stop].tobytes())
        counts = np.zeros(nodes, dtype=np.int64)
        narrow = np.int32 if nodes <= np.iinfo(np.int32).max else np.int64
        with (work / "col.bin").open("wb") as cols, (work / "value.bin").open("wb") as values:
            told_twice = weighted and all(_is_told_twice(_bucket(path, kind)) for path in files)
            for path, start, stop in zip(files, bounds[:-1], bounds[1:], strict=True):
                found = _bucket(path, kind)
                loops = np.zeros(stop - start, dtype=kind)
                loops["key"] = np.arange(start, stop) * (nodes + 1)
                if weighted:
                    loops["there"] = 1
                    found["there"] += 0 if told_twice else found["back"]
                whole = _sorted(np.concatenate([found, loops]))
                row, col = np.divmod(whole["key"], nodes)
                counts[start:stop] = np.bincount(row - start, minlength=stop - start)
                cols.write(col.astype(narrow).tobytes())
                if weighted:
                    values.write(whole["there"].astype(np.float64).tobytes())
        for path in files:
            path.unlink()
        np.save(work / "ptr.npy", np.concatenate([[0], np.cumsum(counts)]))
        _as_npy(work / "col.bin", narrow)
        if weighted:
            _as_npy(work / "value.bin", np.float64)
        else:
            (work / "value.bin").unlink()

    def _write_features(self, work: Path, nodes: int) -> None:
        node, columns = self.features.columns.names[0], self.features.columns.values
        shape, seen = (nodes, len(columns)), np.zeros(nodes, dtype=bool)
        x = np.lib.format.open_memmap(work / "x.npy", mode="w+", dtype=np.float32, shape=shape)
        with (work / "x.npy").open("r+b") as stream:
            take_room(stream.fileno(), size_of(stream))
        for batch in self.features.blocks({node: pa.int64()} | dict.fromkeys(columns, pa.float32())):
            rows = self.features.nodes(batch, node)
            if seen[rows].any() or len(np.unique(rows)) < len(rows):
                raise DatasetError(f"{self.features.path}: a node has more than one row. Keep one of each.")
            seen[rows] = True
            for index, column in enumerate(columns):
                values = batch.column(column).to_numpy(zero_copy_only=False)
                if not np.isfinite(values).all():
                    raise DatasetError(
                        f"{self.features.path}, column {column!r}: cells are empty or infinite. Fill them."
                    )
                x[rows, index] = values
        x.flush()
        if not seen.all():
            _logger.warning("%s: %d nodes without features.", self.folder.resolve().name, nodes - seen.sum())

    def _labels(self, nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int8] | None, list[str]]:
        labels, codes = np.full(nodes, -1, dtype=np.int64), np.zeros(nodes, dtype=np.int8)
        if self.labels is None:
            return labels, None, []
        node, label, *split = self.labels.columns.names
        number: dict[str, int] = {}
        for batch in self.labels.blocks({node: pa.int64(), label: pa.string()} | dict.fromkeys(split, pa.string())):
            rows = self.labels.nodes(batch, node)
            for index, column in enumerate((label, *split)):
                texts = pc.utf8_trim_whitespace(batch.column(column)).dictionary_encode()
                names = texts.dictionary.to_pylist()
                if index == 0:
                    of_name = [-1 if name in MISSING else number.setdefault(name, len(number)) for name in names]
                    into: Any = labels
                else:
                    of_name, into = [_split_code(self.labels.path, name) for name in names], codes
                missing = -1 if index == 0 else 0
                indices = texts.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
                into[rows] = np.array([*of_name, missing])[indices]
        class_names = sorted_names(list(number))
        order = np.array([*(class_names.index(name) for name in number), -1])
        return order[labels], codes if split else None, class_names


def _header(path: Path) -> list[str]:
    try:
        if path.suffix.lower() == ".parquet":
            return list(pyarrow.parquet.read_schema(path).names)
        with path.open(encoding="utf-8-sig", newline="") as stream:
            return [cell.strip() for cell in next(csv.reader(stream, delimiter=_DELIMITERS[path.suffix.lower()]), [])]
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: cannot be read ({error}). Copy or write it again.") from error


def _sorted(entries: NDArray[Any]) -> NDArray[Any]:
    """Entries in the order of their keys."""
    if entries.dtype.names == ("key",):
        return np.asarray(np.sort(entries["key"]).view(entries.dtype))
    return np.asarray(entries[np.argsort(entries["key"], kind="stable")])


def _bucket(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """The entries of a bucket, each once: weights of an entry that is given several times add up."""
    given = _sorted(np.fromfile(path, dtype=kind))
    is_first = np.append(True, given["key"][1:] != given["key"][:-1])[: len(given)]
    unique: NDArray[Any] = given[is_first]
    if kind.names != ("key",) and len(given):
        for name in ("there", "back"):
            unique[name] = np.add.reduceat(given[name], np.flatnonzero(is_first))
    return unique


def _is_told_twice(entries: NDArray[Any]) -> bool:
    """Whether each edge is given both ways with equal weights, so that these do not add up."""
    return bool((entries["there"] == entries["back"]).all())


def _as_npy(path: Path, dtype: Any) -> None:
    """Put a header before the numbers of a file."""
    numbers = np.memmap(path, dtype=dtype, mode="r")
    np.save(path.with_suffix(".npy"), numbers)
    path.unlink()


def _split_code(path: Path, name: str) -> int:
    if name.lower() not in SPLIT_CODES and name not in MISSING:
        raise DatasetError(f"{path}: {name!r} is no part of a split. Write train, val, test or nothing.")
    return SPLIT_CODES.get(name.lower(), 0)
