import pytest

from cagat.errors import DatasetError
from cagat.estimator.sample_weights import checked_weights


def test_one_weight_a_row():
    assert checked_weights([1, 2, 0.5], 3).tolist() == [1, 2, 0.5]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(2,\), but X has 3 rows\. Give one weight a row"),
        ([[1, 2, 3]], r"shape \(1, 3\)"),
        (["a", "b", "c"], r"must be 3 numbers.*'a'"),
        ([1, None, [2]], "must be 3 numbers"),
    ],
)
def test_what_weighs_no_rows_is_refused(weights, message):
    with pytest.raises(DatasetError, match=message):
        checked_weights(weights, 3)
