"""Tables of a graph in CSV, TSV and Parquet files."""

import csv
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cagat.data.columns import Columns, TableOptions, find_columns, read_kinds
from cagat.data.graph import RawGraph
from cagat.data.tables import Table, graph_from_tables
from cagat.data.validation import file_sha256, require_memory, require_plausible
from cagat.errors import DatasetError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = (*_DELIMITERS, ".parquet")
_FILES = {
    "edges": ("edges",),
    "features": ("features", "nodes"),
    "labels": ("labels", "label", "target", "targets", "classes", "y"),
    "splits": ("splits", "split"),
}
_KINDS_FILE = "columns.yaml"
_BLOCK_BYTES = 2**24
_LONGEST_HEADER = 2**24
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TEXT = pa.dictionary(pa.int32(), pa.string())


def read_folder(folder: Path, options: TableOptions | None = None) -> RawGraph:
    """Read a graph from the `edges` file of a directory, and its `features`, `labels` and `splits` if there are.

    What columns hold is read from its `columns.yaml`, unless the options say it.
    """
    options, paths = options or TableOptions(), folder_files(folder)
    if not options.kinds and (said := folder / _KINDS_FILE).is_file():
        options = replace(options, kinds=read_kinds(said))
    return read_tables(paths, options, name=folder.resolve().name)


def folder_files(folder: Path) -> dict[str, Path]:
    """The tables of a graph in a directory, by their kind; there must be one of edges."""
    paths = {}
    for kind, names in _FILES.items():
        files = (folder / f"{name}{suffix}" for name in names for suffix in _SUFFIXES)
        found = [path for path in files if path.is_file()]
        if len(found) > 1:
            raise DatasetError(f"{folder}: there are {' and '.join(path.name for path in found)}. Keep one of them.")
        if found:
            paths[kind] = found[0]
    if "edges" not in paths:
        raise DatasetError(
            f"{folder}: there is no edges file. A directory of a graph holds edges{_SUFFIXES[0]} (or "
            f"{', '.join(_SUFFIXES[1:])}) and, if there are, features, labels and splits with one of these endings."
        )
    return paths


def read_tables(
    paths: Mapping[str, Path], options: TableOptions | None = None, *, directed: bool = False, name: str
) -> RawGraph:
    """Read a graph from its tables, by their kind; see docs/reference/data.md for their columns.

    The sha256 of a graph in several files is that of their sums, as `sha256sum EDGES FEATURES ... | sha256sum` gives it
    when run where they are.
    """
    labelled = "labels" not in paths
    tables = {kind: read_table(path, kind, options, labelled=labelled) for kind, path in paths.items()}
    sums = "".join(f"{file_sha256(path)}  {path.name}\n" for path in paths.values())
    return graph_from_tables(
        tables,
        options,
        directed=directed,
        name=name,
        source="files " + ", ".join(map(str, paths.values())),
        sha256=hashlib.sha256(sums.encode()).hexdigest() if len(paths) > 1 else file_sha256(paths["edges"]),
    )


def read_table(path: Path, kind: str, options: TableOptions | None = None, *, labelled: bool = False) -> Table:
    """Read a CSV, TSV or Parquet file, with each name once and numbers as float32.

    A table of features may hold anything, and if `labelled`, labels, too; see :func:`find_columns`.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise DatasetError(f"{path}: a table ends in {', '.join(_SUFFIXES)}, not in {path.suffix!r}. Convert it.")
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such file. Check the path.")
    options = options or TableOptions()

    def choose(header: list[str]) -> Columns:
        return find_columns(kind, str(path), header, options.names, labelled=labelled)

    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_text
    try:
        return read(path, kind, choose, options)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: {str(error).splitlines()[0]}. Correct the file.") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}). Copy or write it again.") from error


_Choose = Callable[[list[str]], Columns]


def _read_text(path: Path, kind: str, choose: _Choose, options: TableOptions) -> Table:
    delimiter = _DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        first = stream.readline(_LONGEST_HEADER)
    if not first.strip():
        raise DatasetError(f"{path}: the file is empty, or its first line is. The first line must name the columns.")
    header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    bare = kind == "edges" and len(header) in (2, 3) and all(map(_NUMBER.fullmatch, header))
    if bare:
        header = ["source", "target", "weight"][: len(header)]
    columns = choose(header)

    def read(values: pa.DataType, *, newlines: bool = False) -> Table:
        types = dict.fromkeys(columns.texts, _TEXT) | dict.fromkeys(columns.values, values)
        types |= {name: pa.string() for name in columns.values if options.kinds.get(name) == "drop"}
        with pyarrow.csv.open_csv(
            path,
            pyarrow.csv.ReadOptions(column_names=header, skip_rows=0 if bare else 1, block_size=_BLOCK_BYTES),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
            ),
        ) as reader:
            return Table(reader.read_all(), columns, str(path))

    is_mixed = kind == "features" and len(columns.names) == 1
    try:
        if not (is_mixed and options.encodes):
            return read(pa.float32())
    except pa.ArrowInvalid as error:
        cell = re.search(r"In CSV column #(\d+): (.*)", str(error))
        if not is_mixed and cell is None:
            raise
        if not is_mixed and cell is not None:
            column = header[int(cell[1])]
            raise DatasetError(f"{path}, column {column!r}: {cell[2]}. Write numbers there, or remove it.") from error
    return read(pa.string(), newlines=True)


def _read_parquet(path: Path, kind: str, choose: _Choose, options: TableOptions) -> Table:
    file = pyarrow.parquet.ParquetFile(path)
    columns = choose(file.schema_arrow.names)
    wanted = [*columns.texts, *columns.values]
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}.intersection(wanted)
    # A number, or the code of a text, in each cell; and each text once, however often it is there.
    needed = 8 * file.metadata.num_rows * len(wanted)
    needed += sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in texts)
    what, packed = f"{path}: {file.metadata.num_rows} rows of {len(wanted)} columns", path.stat().st_size
    require_plausible(what, needed, packed)
    require_memory(what, needed, "Use a machine with more memory.")
    file = pyarrow.parquet.ParquetFile(path, read_dictionary=list(texts))
    tables = [file.read_row_groups([], columns=wanted)]
    for number in range(file.num_row_groups):
        # One group after the other, since a file may tell smaller sizes than it has.
        tables.append(file.read_row_group(number, columns=wanted))
        require_plausible(what, sum(table.nbytes for table in tables), packed)
    return Table(pa.concat_tables(tables), columns, str(path))
