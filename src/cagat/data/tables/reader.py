"""Read one table from a file, in columns and block by block."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cagat.data.memory import require_memory, require_plausible
from cagat.data.tables.layout import Layout
from cagat.errors import DatasetError

FindLayout = Callable[[str, Sequence[str]], Layout]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*_DELIMITERS, ".parquet")
_BLOCK_BYTES = 2**24
_LONGEST_HEADER = 2**24
_MOST_COLUMNS = 50_000
_TEXT = pa.dictionary(pa.int32(), pa.string())


def read_table(path: Path, find_layout: FindLayout) -> tuple[Any, Layout]:
    """Read a CSV, TSV or Parquet file.

    Returns:
        A `pyarrow.Table` whose texts are dictionary-encoded and whose numbers are float32, and its layout.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise DatasetError(
            f"{path}: a table ends in {', '.join(SUFFIXES)}, not in {path.suffix!r}. Rename or convert it."
        )
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such file. Check the path.")
    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_text
    try:
        return read(path, find_layout)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: {str(error).splitlines()[0]}. Mend the file.") from error
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error}). Copy or write it again.") from error


def _read_text(path: Path, find_layout: FindLayout) -> tuple[Any, Layout]:
    delimiter = _DELIMITERS[path.suffix.lower()]
    with path.open(encoding="utf-8-sig", newline="") as stream:
        first = stream.readline(_LONGEST_HEADER)
    _require_few(path, first.count(delimiter) + 1)
    if not first.strip():
        raise DatasetError(f"{path}: the file is empty, or its first line is. The first line must name the columns.")
    header = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    layout = _checked(path, find_layout(str(path), header))
    types = dict.fromkeys(layout.texts, _TEXT) | {column: pa.float32() for column in layout.numbers}
    try:
        with pyarrow.csv.open_csv(
            path,
            pyarrow.csv.ReadOptions(
                column_names=list(layout.columns), skip_rows=int(layout.has_header), block_size=_BLOCK_BYTES
            ),
            pyarrow.csv.ParseOptions(delimiter=delimiter),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=list(types), null_values=[""], strings_can_be_null=True
            ),
        ) as reader:
            return pa.Table.from_batches(list(reader), reader.schema), layout
    except pa.ArrowInvalid as error:
        raise _wrong_cell(path, layout, error) from error


def _wrong_cell(path: Path, layout: Layout, error: Exception) -> DatasetError:
    """What Arrow says of a cell or a line, with the name of the column instead of its number."""
    column = re.search(r"In CSV column #(\d+): (.*)", str(error))
    if column is None:
        return DatasetError(f"{path}: {str(error).splitlines()[0]}. Every line must have a cell for each column.")
    name = layout.columns[int(column[1])]
    return DatasetError(f"{path}, column {name!r}: {column[2]}. Write numbers there, or take the column out.")


def _read_parquet(path: Path, find_layout: FindLayout) -> tuple[Any, Layout]:
    file = pyarrow.parquet.ParquetFile(path)
    _require_few(path, len(file.schema_arrow.names))
    layout = _checked(path, find_layout(str(path), file.schema_arrow.names))
    wanted = [*layout.texts, *layout.numbers]
    what = f"{path}: {file.metadata.num_rows} rows of {len(wanted)} columns"
    needed = _unpacked_bytes(path, file, wanted)
    require_plausible(what, needed, path.stat().st_size)
    require_memory(what, needed, "Use a machine with more memory.")
    file = pyarrow.parquet.ParquetFile(path, read_dictionary=_texts(file, wanted))
    tables: list[Any] = []
    for number in range(file.num_row_groups):
        # One group after the other, since the sizes that a file tells of itself may be wrong.
        tables.append(file.read_row_group(number, columns=wanted))
        require_plausible(what, sum(table.nbytes for table in tables), path.stat().st_size)
    return (pa.concat_tables(tables) if tables else file.schema_arrow.empty_table()), layout


def _texts(file: Any, wanted: Sequence[str]) -> list[str]:
    """The columns of texts of whatever type, which are to be read with each text once, however often it is there."""
    columns = map(file.schema.column, range(len(file.schema)))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY" and column.path in wanted]


def _unpacked_bytes(path: Path, file: Any, wanted: Sequence[str]) -> int:
    """An estimate of the memory for some columns: a number, or that of its text, for each row, and the texts."""
    texts, row = set(_texts(file, wanted)), 0
    for column in wanted:
        kind = file.schema_arrow.field(column).type
        if pa.types.is_nested(kind):
            raise DatasetError(
                f"{path}, column {column!r}: holds {kind}, but names are texts or whole numbers, and all else numbers."
            )
        # A column without any value has a type without a width.
        row += 4 if column in texts or pa.types.is_null(kind) else kind.bit_width // 8 + 4
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    told = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in texts)
    return int(file.metadata.num_rows * row + told)


def _require_few(path: Path, columns: int) -> None:
    if columns > _MOST_COLUMNS:
        raise DatasetError(
            f"{path}: has {columns} columns, but no more than {_MOST_COLUMNS} are read. Use fewer; or write the "
            "features that are not zero as node,feature,value, or all of them to an .npz file."
        )


def _checked(path: Path, layout: Layout) -> Layout:
    column, count = Counter(layout.columns).most_common(1)[0]
    if count > 1:
        raise DatasetError(f"{path}: the column {column!r} is there twice. Give each column a name of its own.")
    return layout
