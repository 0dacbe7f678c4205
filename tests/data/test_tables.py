"""Names in columns."""

import numpy as np
import pyarrow as pa
import pytest

from cagat.data.tables import Columns, Table, sorted_names
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


def codes_of(column, **options):
    return Table(pa.table({"x": column}), Columns(("x",)), "test").codes(0, **options)


def test_codes_follow_the_first_occurrence_over_all_blocks():
    column = pa.chunked_array([["b", " a"], ["a", "b ", "c"]])
    names, codes = codes_of(column)
    assert names == ["b", "a", "c"]
    assert codes.tolist() == [0, 1, 1, 0, 2]


def test_names_that_no_row_uses_are_no_names():
    column = pa.chunked_array([pa.DictionaryArray.from_arrays([2, None, 2], ["x", "y", "z"])])
    names, codes = codes_of(column, may_be_missing=True)
    assert names == ["z"]
    assert codes.tolist() == [0, -1, 0]


@pytest.mark.parametrize(("wrong", "said"), [(0.5, "0.5"), (np.inf, "inf"), (1e300, "10000000000000000525")])
def test_floats_that_are_no_names(wrong, said):
    with pytest.raises(DatasetError, match=rf"test, column 'x': .* whole numbers, not double .*{said}"):
        codes_of(pa.chunked_array([[1.0, wrong]]))


def test_numbers_too_large_become_infinite():
    assert np.isinf(Table(pa.table({"x": [1e300]}), Columns(("node",), ("x",)), "test").numbers("x")).all()
