"""Names in columns."""

import numpy as np
import pyarrow as pa
import pytest

from cagat.data.tables import Columns, Table, as_codes, sorted_names
from cagat.errors import DatasetError


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["1", "01"], ["01", "1"]),
        (["--5", "4"], ["--5", "4"]),
        (["9" * 5000, "10"], ["10", "9" * 5000]),
        (["²", "1"], ["1", "²"]),
        ([], []),
    ],
)
def test_order(names, ordered):
    assert sorted_names(names) == ordered


def test_codes_follow_the_first_occurrence_over_all_blocks():
    column = pa.chunked_array([["b", " a"], ["a", "b ", "c"]])
    names, codes = as_codes("test", column)
    assert names == ["b", "a", "c"]
    assert codes.tolist() == [0, 1, 1, 0, 2]


def test_names_that_no_row_uses_are_no_names():
    column = pa.chunked_array([pa.DictionaryArray.from_arrays([2, None, 2], ["x", "y", "z"])])
    names, codes = as_codes("test", column, may_be_missing=True)
    assert names == ["z"]
    assert codes.tolist() == [0, -1, 0]


@pytest.mark.parametrize("wrong", [0.5, np.inf, 1e300])
def test_floats_that_are_no_names(wrong):
    with pytest.raises(DatasetError, match=rf"test: .*{str(wrong).replace('+', '.')}"):
        as_codes("test", pa.chunked_array([[1.0, wrong]]))


def test_numbers_too_large_become_infinite():
    assert np.isinf(Table(pa.table({"x": [1e300]}), Columns(("node",), ("x",)), "test").numbers("x")).all()
