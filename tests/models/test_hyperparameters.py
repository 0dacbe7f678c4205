import math

import numpy as np
import pytest

from cagat.errors import ConfigError
from cagat.models.hyperparameters import check_hyperparameter


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden", 1),
        ("hidden", np.int64(8)),
        ("dropout", np.float32(0.5)),
        ("dropout", 0),
        ("dropout", 1.0),
        ("alpha", 0.1),
        ("steps", 0),
        ("xi", 1e3),
        ("feedback", False),
        ("support", "full"),
    ],
)
def test_takes_what_makes_sense(key, value):
    check_hyperparameter("gcn", key, value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hidden", 0, "gcn: hidden must be a whole number not below 1, but is 0."),
        ("hidden", 1.5, "a whole number not below 1, but is 1.5"),
        ("heads", True, "a whole number not below 1, but is True"),
        ("dropout", 2, "gcn: dropout must be a number from 0 to 1, but is 2."),
        ("dropout", "half", "a number from 0 to 1, but is 'half'"),
        ("dropout", math.nan, "a number from 0 to 1, but is nan"),
        ("xi", math.inf, "a number not below 0, but is inf"),
        ("steps", -1, "a whole number not below 0, but is -1"),
        ("feedback", 1, "true or false, but is 1"),
    ],
)
def test_refuses_the_rest_and_says_what_would_do(key, value, message):
    with pytest.raises(ConfigError, match=message):
        check_hyperparameter("gcn", key, value)
