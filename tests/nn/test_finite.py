import pytest
import torch

from cagat.errors import NonFiniteError
from cagat.nn.finite import require_finite

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
