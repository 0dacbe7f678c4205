"""Scaling of features: values by hand, dense and sparse alike."""

import pytest
import torch

from cagat.data import normalize_features
from cagat.errors import DatasetError, NonFiniteError

X = torch.tensor([[3.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, 3.0, 4.0]])
EXPECTED = {
    "l1": torch.tensor([[0.75, 0.0, -0.25], [0.0, 0.0, 0.0], [0.0, 3 / 7, 4 / 7]]),
    "l2": torch.tensor([[3 / 10**0.5, 0.0, -1 / 10**0.5], [0.0, 0.0, 0.0], [0.0, 0.6, 0.8]]),
    "binary": torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
    "none": X,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
@pytest.mark.parametrize("norm", ["l1", "l2", "binary", "none"])
def test_values_by_hand(norm, layout, dtype):
    x = X.to(dtype)
    scaled = normalize_features(x if layout is torch.strided else x.to_sparse_csr(), norm)
    assert scaled.layout is layout
    assert scaled.dtype is dtype
    torch.testing.assert_close(scaled.to_dense(), EXPECTED[norm].to(dtype))


def test_the_input_is_left_alone():
    x = X.to_sparse_csr()
    normalize_features(x, "l2")
    assert torch.equal(x.to_dense(), X)


def test_errors_name_value_and_remedy():
    with pytest.raises(DatasetError, match=r"'l3'.*l1, l2, binary, none"):
        normalize_features(X, "l3")
    with pytest.raises(DatasetError, match=r"sparse_coo.*to_sparse_csr"):
        normalize_features(X.to_sparse(), "l1")
    with pytest.raises(DatasetError, match=r"a ndarray.*torch\.as_tensor\(x\)"):
        normalize_features(X.numpy())
    with pytest.raises(DatasetError, match=r"shape \(nodes, features\)"):
        normalize_features(X[0])


@pytest.mark.parametrize("norm", ["l1", "l2", "binary"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_counted(norm, value):
    x = X.clone()
    x[0, :2] = value
    for layout in (x, x.to_sparse_csr()):
        with pytest.raises(NonFiniteError, match=r"2 values that are NaN or infinite.*nan_to_num"):
            normalize_features(layout, norm)
    assert normalize_features(x, "none") is x
