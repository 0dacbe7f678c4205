"""From a column of a table to codes and numbers."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cagat.errors import DatasetError

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_LARGEST_WHOLE = 2**53  # Up to here floats hold every whole number.


def as_codes(what: str, column: Any, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct names in a column, in the order in which they first occur, and the code of each row.

    Whole numbers are names too: 7 in a Parquet file is the name 7 in a CSV file. Spaces around a name do not count.

    Args:
        what: Names the column in errors.
        column: A `pyarrow.ChunkedArray`.
        may_be_missing: Whether a row may have no name; its code is then -1.
    """
    if pa.types.is_floating(column.type):
        column = _whole_numbers(what, column)
    if not pa.types.is_dictionary(column.type):
        column = _texts(what, column).dictionary_encode()
    if column.null_count and not may_be_missing:
        raise DatasetError(f"{what}: {column.null_count} rows are empty. Fill them in or remove these rows.")
    if column.num_chunks == 0:
        return [], np.empty(0, dtype=np.int64)
    column = column.unify_dictionaries()
    try:
        found = pc.utf8_trim_whitespace(_texts(what, column.chunk(0).dictionary)).to_pylist()
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{what}: names are not UTF-8 ({error}). Write them as such.") from error
    rows = np.concatenate([chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in column.chunks])
    return _compact(found, rows.astype(np.int64))


def as_numbers(what: str, column: Any) -> NDArray[np.float32]:
    """Return a column of numbers as float32; an empty cell is an error, because 0 and unknown are not the same."""
    if column.null_count:
        raise DatasetError(f"{what}: {column.null_count} cells are empty. Write 0 if that is meant.")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise DatasetError(f"{what}: numbers are expected, but the column holds {column.type}.")
    with np.errstate(over="ignore"):
        return np.asarray(column.to_numpy(), dtype=np.float32)


def _whole_numbers(what: str, column: Any) -> Any:
    """Pandas turns whole numbers into floats when some are missing: turn them back."""
    array = column.to_numpy()
    missing = np.isnan(array)
    whole = np.where(missing, 0, array)
    wrong = (np.abs(whole) > _LARGEST_WHOLE) | (whole != np.trunc(whole))
    if wrong.any():
        raise DatasetError(f"{what}: names must be texts or whole numbers, but one is {whole[wrong][0]}.")
    return pa.chunked_array([pa.array(whole.astype(np.int64), mask=missing)])


def _texts(what: str, column: Any) -> Any:
    try:
        return column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatasetError(f"{what}: names must be texts or whole numbers, but are {column.type}.") from error


def _compact(found: list[str], rows: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Names that differ only in spaces become one, and names that no row uses go."""
    used = np.zeros(len(found), dtype=np.bool_)
    used[rows[rows >= 0]] = True
    if used.all() and len(set(found)) == len(found):
        return found, rows
    number: dict[str, int] = {}
    code = np.full(len(found) + 1, -1, dtype=np.int64)  # The last place serves the rows without a name, which are -1.
    for place in np.flatnonzero(used).tolist():
        code[place] = number.setdefault(found[place], len(number))
    return list(number), code[rows]


def in_order(names: list[str]) -> list[str]:
    """Return names in sorted order: by value if all are whole numbers, else as texts."""
    numeric = all(_WHOLE_NUMBER.fullmatch(name) for name in names)
    return sorted(names, key=lambda name: (int(name) if numeric else 0, name))
