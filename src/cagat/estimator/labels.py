"""From what users pass as y to numbered classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from cagat.errors import DatasetError


class NumberedLabels(NamedTuple):
    """The classes in order, and for each node the number of its class, or -1 for none."""

    classes: NDArray[Any]
    numbers: NDArray[np.int64]


def checked_labels(y: Any, X: Any) -> NDArray[Any]:
    """The labels as a vector as long as X; scikit-learn's own errors, which its users know, if they are not."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if len(labels) != X.shape[0]:
        raise DatasetError(
            f"y has {len(labels)} labels, but X has {X.shape[0]} rows. Give one label a row, -1 where there is none."
        )
    return labels


def is_unlabelled(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries say that a node has no label.

    That is -1 in numbers; the text "-1" in texts, which is what NumPy makes of -1 among texts; and in an array of
    objects any of these, None or NaN, as pandas writes what is missing.
    """
    if y.dtype.kind == "b":
        return np.zeros(y.shape, dtype=np.bool_)
    if y.dtype.kind in "US":
        return np.asarray(y.astype(np.str_) == "-1")
    if y.dtype.kind == "O":
        return np.array([_is_missing(value) for value in y], dtype=np.bool_)
    return np.asarray(y == -1)


def numbered(y: NDArray[Any]) -> NumberedLabels:
    """Number the classes that occur.

    Raises:
        DatasetError: No node has a label, or all that have one are of one class.
        ValueError: The labels are no classes: scikit-learn's own error, which its users know.
    """
    labelled = ~is_unlabelled(y)
    if not labelled.any():
        raise DatasetError(
            f"None of the {len(y)} nodes has a label: all of y is -1. Give some nodes of each class their label."
        )
    known = plain(y[labelled])
    check_classification_targets(known)
    classes, numbers = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        raise DatasetError(
            f"All labelled nodes are of one class, {classes[0]!s}, so there is nothing to tell apart. Label nodes of "
            "at least two classes; -1 is no class but means unlabelled."
        )
    every = np.full(len(y), -1, dtype=np.int64)
    every[labelled] = numbers
    return NumberedLabels(classes, every)


def plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels without unlabelled ones in their natural type: numbers among None are objects only because of the None."""
    return np.array(labels.tolist()) if labels.dtype.kind == "O" and len(labels) else labels


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value == "-1"):
        return True
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return bool(value == -1 or value != value)
    # pandas.NA compares to nothing, and cannot be imported where there is no pandas.
    return type(value).__name__ == "NAType"
