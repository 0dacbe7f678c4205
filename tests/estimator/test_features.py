import numpy as np
import pytest
from scipy import sparse

from cagat.estimator.features import FeatureScaling, as_tensor, row_digests, stacked

X = np.array([[1, 0, 300], [3, 0, 100], [0, 0, 200]], dtype=np.float32)


def test_standard_columns_have_one_mean_and_variances_that_sum_to_one():
    scaled = FeatureScaling(X, "standard")(X)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(scaled.var(axis=0), [1 / 3, 0, 1 / 3], rtol=1e-5)  # A constant column stays 0.


def test_sparse_columns_are_not_centred():
    scaling = FeatureScaling(sparse.csr_array(X), "standard")
    assert scaling(X).nnz == 5
    np.testing.assert_allclose(
        scaling(X).toarray(), X / np.where(X.std(axis=0) > 0, X.std(axis=0), 1) / 3**0.5, rtol=1e-5
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "binary", "none"])
def test_rows_are_scaled_alike_in_both_forms(norm):
    before = X.copy()
    dense, thin = FeatureScaling(X, norm), FeatureScaling(sparse.csr_array(X), norm)
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(dense(form), thin(form).toarray(), rtol=1e-6)
        np.testing.assert_array_equal(stacked(thin(form), thin(form)).toarray()[3:], thin(form).toarray())
        np.testing.assert_array_equal(as_tensor(thin(form)).to_dense().numpy(), thin(form).toarray())
    np.testing.assert_array_equal(X, before)


def test_rows_are_known_in_either_form():
    rows = np.array([[0, 1], [2, 0], [0, 1], [0, 0], [-0.0, 0]], dtype=np.float32)
    digests = row_digests(rows)
    assert digests == row_digests(sparse.csr_array(rows))
    assert [digests.index(digest) for digest in digests] == [0, 1, 0, 3, 3]
