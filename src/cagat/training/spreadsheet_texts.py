"""Texts that a spreadsheet does not take for formulas."""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# What spreadsheets compute begins with one of these; a plain number, which may begin with a sign, is only a number.
_FORMULA = r"^[=+\-@\t\r\n|%]"
_NUMBER = r"^[+\-]?[0-9]+(\.[0-9]+)?([eE][+\-]?[0-9]+)?$"


def without_formulas(table: pa.Table) -> tuple[pa.Table, int]:
    """Put an apostrophe before each text that begins as a formula does, as spreadsheets themselves mark texts.

    Names of nodes and classes come from anybody's files, and a CSV is opened by double click.

    Returns:
        The table, and how many cells were changed.
    """
    changed = 0
    for place, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        column: Any = table.column(place)
        risky = pc.and_(
            pc.match_substring_regex(column, _FORMULA), pc.invert(pc.match_substring_regex(column, _NUMBER))
        )
        count = pc.sum(risky).as_py() or 0
        if count:
            marked = pc.binary_join_element_wise(pa.scalar("'"), column, "")
            table = table.set_column(place, field, pc.if_else(risky, marked, column))
            changed += count
    names = ["'" + name if re.match(_FORMULA, name) else name for name in table.column_names]
    return table.rename_columns(names), changed
