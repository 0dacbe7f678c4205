"""A table together with what is known about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.data.tables.columns import as_codes, as_numbers
from cagat.data.tables.layout import Layout


@dataclass(frozen=True)
class GivenTable:
    """A `pyarrow.Table`, its layout, and what to call it in errors."""

    table: Any
    layout: Layout
    what: str

    def codes(self, place: int, *, may_be_missing: bool = False) -> tuple[list[str], NDArray[np.int64]]:
        """The names in one of the text columns."""
        column = self.layout.texts[place]
        return as_codes(f"{self.what}, column {column!r}", self.table[column], may_be_missing=may_be_missing)

    def numbers(self, column: str) -> NDArray[np.float32]:
        """The numbers in a column."""
        return as_numbers(f"{self.what}, column {column!r}", self.table[column])
