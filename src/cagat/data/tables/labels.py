"""From tables of labels and splits to vectors."""

import numpy as np
from numpy.typing import NDArray

from cagat.data.parts import PARTS
from cagat.data.tables.columns import in_order
from cagat.data.tables.given import GivenTable
from cagat.errors import DatasetError

_MISSING = {"", "NA", "NaN", "nan", "null"}
_PART_WORDS = {"train": 1, "training": 1, "val": 2, "valid": 2, "validation": 2, "test": 3, "testing": 3}


def label_vector(given: GivenTable | None, rows: NDArray[np.int64], count: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the classes and the class of each node; `rows` says which node each row is of."""
    labels = np.full(count, -1, dtype=np.int64)
    if given is None:
        return [], labels
    names, codes = given.codes(1, may_be_missing=True)
    order = [place for place in in_order(names) if names[place] not in _MISSING]
    number = np.full(len(names) + 1, -1, dtype=np.int64)  # The last place serves rows without a label.
    number[order] = np.arange(len(order))
    labels[rows] = number[codes]
    return [names[place] for place in order], labels


def part_vector(
    labels: GivenTable | None,
    label_rows: NDArray[np.int64],
    splits: GivenTable | None,
    split_rows: NDArray[np.int64],
    count: int,
) -> NDArray[np.int8] | None:
    """Return the part that each node is in, by the table of splits or a column of the labels; `None` without either."""
    in_labels = labels is not None and len(labels.layout.texts) == 3
    if splits is not None and in_labels:
        raise DatasetError(f"{splits.what}: there is a split in the table of labels too. Keep one of the two.")
    given, place, rows = (labels, 2, label_rows) if in_labels else (splits, 1, split_rows)
    if given is None:
        return None
    names, codes = given.codes(place, may_be_missing=True)
    number = np.zeros(len(names) + 1, dtype=np.int8)
    for position, name in enumerate(names):
        if name not in _MISSING and name.lower() not in _PART_WORDS:
            raise DatasetError(f"{given.what}: {name!r} is no part of a split. Write {', '.join(PARTS)} or nothing.")
        number[position] = _PART_WORDS.get(name.lower(), 0)
    parts = np.zeros(count, dtype=np.int8)
    parts[rows] = number[codes]
    return parts
