import numpy as np
import pytest
import torch

from cagat.errors import NonFiniteError
from cagat.nn.validation import (
    check_message_passing,
    checked_fill_value,
    checked_input_size,
    require_finite,
    require_sizes,
    require_switches,
    require_within,
)


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (
            lambda: check_message_passing({"alhpa": 1}, ["alpha", "lam"]),
            TypeError,
            r"no argument 'alhpa'\. Did you mean alpha\?",
        ),
        (
            lambda: check_message_passing({"z": 1}, ["alpha", "lam"]),
            TypeError,
            r"no argument 'z'\. Choose one of alpha, lam, aggr",
        ),
        (lambda: require_switches(bias="no"), TypeError, "bias must be true or false, but is 'no'"),
        (lambda: require_switches(bias=1), TypeError, "bias must be true or false, but is 1"),
        (lambda: checked_input_size("size", (5, 5)), TypeError, r"one number, got \(5, 5\).*bipartite"),
        (lambda: checked_input_size("size", 5.0), TypeError, r"one number, got 5\.0"),
        (lambda: checked_input_size("size", -7), ValueError, "at least 1, or -1 to take it from x, but is -7"),
        (lambda: checked_input_size("size", 0), ValueError, "at least 1, or -1 to take it from x, but is 0"),
        (lambda: checked_input_size("size", True), ValueError, "at least 1, or -1 to take it from x, but is True"),
        (
            lambda: checked_input_size("size", 2**40),
            ValueError,
            "must be at most 2147483647, but is 1099511627776",
        ),
        (lambda: require_sizes(one=1, two=0), ValueError, "two must be a whole number of at least 1, but is 0"),
        (lambda: checked_fill_value("bogus"), ValueError, "one of mean, add, sum, min, max, mul, but is 'bogus'"),
        (lambda: checked_fill_value([1.0]), TypeError, r"fill_value must be a number from .* to 1e\+30, but is a list"),
        (lambda: checked_fill_value(float("nan")), ValueError, "but is nan"),
        (lambda: checked_fill_value(torch.tensor([float("inf")])), ValueError, "finite numbers; pass"),
        (
            lambda: require_within("xi", 1e300, 0, 1e30),
            ValueError,
            r"a number from 0 to 1e\+30, but is 1e\+300",
        ),
        (lambda: require_within("xi", 10**5000, 0, 1e30), ValueError, "but is a number of more than 18 digits"),
        (lambda: require_sizes(one=-(10**5000)), ValueError, "at least 1, but is a number of more than 18 digits"),
        (lambda: require_within("xi", float("nan"), 0, 1e30), ValueError, "but is nan"),
    ],
)
def test_refuses_with_value_and_remedy(check, error, message):
    with pytest.raises(error, match=message):
        check()


def test_takes_the_numbers_of_numpy():
    require_switches(bias=np.bool_(True))
    assert type(checked_input_size("size", np.int64(5))) is int
    assert checked_input_size("size", -1) == -1
    require_within("xi", np.float32(0.5), 0, 1)


def test_what_fills_self_loops():
    ones = torch.ones(2)
    for fill_value in (None, "mean", 0.5, ones):
        assert checked_fill_value(fill_value) is fill_value
    assert type(checked_fill_value(np.float32(0.5))) is float


X, WEIGHTS = torch.ones(2, 2), [torch.ones(2)]


def test_finite_results_pass():
    require_finite(torch.ones(3), X, None, WEIGHTS)
    # Their sum is not finite in single precision, but they are.
    require_finite(torch.full((4,), 3e38), X, None, WEIGHTS)


def test_features_to_blame_are_counted():
    spoilt = X.clone()
    spoilt[0, 1] = float("nan")
    with pytest.raises(NonFiniteError, match=r"x holds 1 values that are NaN or infinite"):
        require_finite(torch.tensor([float("nan")]), spoilt, None, WEIGHTS)
    with pytest.raises(NonFiniteError, match=r"edge_attr holds 1 values"):
        require_finite(torch.tensor([float("nan")]), X, spoilt, WEIGHTS)


def test_features_that_are_too_large_are_told():
    with pytest.raises(NonFiniteError, match=r"too large for torch.float32, since features are up to 1e\+30; scale"):
        require_finite(torch.tensor([float("inf")]), X * 1e30, None, WEIGHTS)


def test_weights_are_left_to_whoever_trains_them():
    require_finite(torch.tensor([float("nan")]), X, None, [torch.tensor([float("nan")])])
