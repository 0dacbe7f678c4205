import numpy as np
import pandas
import pytest

from cagat.errors import DatasetError
from cagat.estimator.labels import checked_labels, is_unlabelled, numbered


@pytest.mark.parametrize(
    ("y", "numbers"),
    [
        (np.array([5, -1, 3]), [1, -1, 0]),
        (np.array([True, False, True]), [1, 0, 1]),
        (np.array(["b", "-1", "a"]), [1, -1, 0]),
        (np.array(["b", None, "a", -1, np.nan, pandas.NA, "-1"], dtype=object), [1, -1, 0, -1, -1, -1, -1]),
        (np.array([7, None, 2], dtype=object), [1, -1, 0]),
        (np.array(["", "a", "-1"]), [0, 1, -1]),  # An empty text is a text.
    ],
)
def test_classes_are_numbered_in_order(y, numbers):
    assert numbered(y).numbers.tolist() == numbers
    assert (is_unlabelled(y) == (np.array(numbers) == -1)).all()


def test_as_many_labels_as_rows():
    with pytest.raises(DatasetError, match=r"y has 2 labels, but X has 3 rows\. Give one label a row"):
        checked_labels([0, 1], np.ones((3, 1)))


def test_measurements_are_no_classes():
    with pytest.raises(ValueError, match="Unknown label type"):
        numbered(np.array([0.5, 1.25, -1]))
