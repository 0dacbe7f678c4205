"""From tables of labels and splits to vectors."""

import numpy as np
from numpy.typing import NDArray

from cagat.data.parts import PARTS
from cagat.data.tables.columns import in_order
from cagat.data.tables.given import GivenTable
from cagat.errors import DatasetError

_MISSING = {"", "NA", "NaN", "nan", "null"}
_PART_WORDS = {"train": 1, "training": 1, "val": 2, "valid": 2, "validation": 2, "test": 3, "testing": 3}


def label_vector(given: GivenTable, rows: NDArray[np.int64], count: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the classes and the class of each node; `rows` says which node each row is of."""
    found, codes = given.codes(1, may_be_missing=True)
    names = in_order([name for name in found if name not in _MISSING])
    number = {name: place for place, name in enumerate(names)}
    # One place more, for the rows without any text, whose code is -1.
    label = np.array([*(number.get(name, -1) for name in found), -1], dtype=np.int64)
    labels = np.full(count, -1, dtype=np.int64)
    labels[rows] = label[codes]
    return names, labels


def part_vector(given: GivenTable, place: int, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the part of each node, by the text column at a place; `rows` says which node each row is of."""
    found, codes = given.codes(place, may_be_missing=True)
    for name in found:
        if name not in _MISSING and name.lower() not in _PART_WORDS:
            raise DatasetError(f"{given.what}: {name!r} is no part of a split. Write {', '.join(PARTS)} or nothing.")
    part = np.array([*(_PART_WORDS.get(name.lower(), 0) for name in found), 0], dtype=np.int64)
    parts = np.zeros(count, dtype=np.int64)
    parts[rows] = part[codes]
    return parts
