"""Tables of a graph in CSV, TSV and Parquet files."""

import csv
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cagat.data.graph import RawGraph
from cagat.data.tables import KINDS, Table, find_columns, graph_from_tables
from cagat.data.validation import file_sha256, require_memory, require_plausible
from cagat.errors import DatasetError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = (*_DELIMITERS, ".parquet")
_BLOCK_BYTES = 2**24
_LONGEST_HEADER = 2**24
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_TEXT = pa.dictionary(pa.int32(), pa.string())


def read_folder(folder: Path) -> RawGraph:
    """Read a graph from the `edges` file of a directory, and its `features`, `labels` and `splits` if there are."""
    paths = {}
    for kind in KINDS:
        found = [path for suffix in _SUFFIXES if (path := folder / f"{kind}{suffix}").is_file()]
        if len(found) > 1:
            raise DatasetError(f"{folder}: there are {' and '.join(path.name for path in found)}. Keep one of them.")
        if found:
            paths[kind] = found[0]
    if "edges" not in paths:
        raise DatasetError(
            f"{folder}: there is no edges file. A directory of a graph holds edges{_SUFFIXES[0]} (or "
            f"{', '.join(_SUFFIXES[1:])}) and, if there are, features, labels and splits with one of these endings."
        )
    return read_tables(paths, name=folder.resolve().name)


def read_tables(paths: Mapping[str, Path], *, directed: bool = False, name: str) -> RawGraph:
    """Read a graph from its tables, by their kind; see docs/data.md for their columns.

    The sha256 of a graph in several files is that of their sums, as `sha256sum EDGES FEATURES ... | sha256sum` gives it
    when run where they are.
    """
    tables = {kind: read_table(path, kind) for kind, path in paths.items()}
    sums = "".join(f"{file_sha256(path)}  {path.name}\n" for path in paths.values())
    return graph_from_tables(
        tables,
        directed=directed,
        name=name,
        source="files " + ", ".join(map(str, paths.values())),
        sha256=hashlib.sha256(sums.encode()).hexdigest() if len(paths) > 1 else file_sha256(paths["edges"]),
    )


def read_table(path: Path, kind: str) -> Table:
    """Read a CSV, TSV or Parquet file, with each text once and numbers as float32."""
    if path.suffix.lower() not in _SUFFIXES:
        raise DatasetError(f"{path}: a table ends in {', '.join(_SUFFIXES)}, not in {path.suffix!r}. Convert it.")
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such file. Check the path.")
    try:
        return _read_parquet(path, kind) if path.suffix.lower() == ".parquet" else _read_text(path, kind)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: {str(error).splitlines()[0]}. Correct the file.") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}). Copy or write it again.") from error


def _read_text(path: Path, kind: str) -> Table:
    delimiter = _DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        first = stream.readline(_LONGEST_HEADER)
    if not first.strip():
        raise DatasetError(f"{path}: the file is empty, or its first line is. The first line must name the columns.")
    header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    bare = kind == "edges" and len(header) in (2, 3) and all(map(_NUMBER.fullmatch, header))
    if bare:
        header = ["source", "target", "weight"][: len(header)]
    columns = find_columns(kind, str(path), header)
    types = dict.fromkeys(columns.names, _TEXT) | dict.fromkeys(columns.numbers, pa.float32())
    try:
        with pyarrow.csv.open_csv(
            path,
            pyarrow.csv.ReadOptions(column_names=header, skip_rows=0 if bare else 1, block_size=_BLOCK_BYTES),
            pyarrow.csv.ParseOptions(delimiter=delimiter),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
            ),
        ) as reader:
            return Table(reader.read_all(), columns, str(path))
    except pa.ArrowInvalid as error:
        cell = re.search(r"In CSV column #(\d+): (.*)", str(error))
        if cell is None:
            raise
        column = header[int(cell[1])]
        raise DatasetError(f"{path}, column {column!r}: {cell[2]}. Write numbers there, or remove it.") from error


def _read_parquet(path: Path, kind: str) -> Table:
    file = pyarrow.parquet.ParquetFile(path)
    columns = find_columns(kind, str(path), file.schema_arrow.names)
    wanted = [*columns.names, *columns.numbers]
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
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
