import numpy as np
import pytest
from scipy import sparse

from cagat import CaGATClassifier
from cagat.errors import NonFiniteError
from cagat.estimator.points import checked_points

X = np.eye(3)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_infinity_comes_with_a_remedy(form, value):
    with pytest.raises(NonFiniteError, match=r"infinity or a value too large.*Remove or replace it"):
        checked_points(CaGATClassifier(), form(X * value if np.isfinite(value) else np.where(X, value, 0)))


def test_the_rest_is_scikit_learns():
    assert checked_points(CaGATClassifier(), X).dtype == np.float32
    with pytest.raises(ValueError, match=r"contains NaN\.\nCaGATClassifier does not accept missing values"):
        checked_points(CaGATClassifier(), np.where(X, np.nan, 0))
    with pytest.raises(ValueError, match="requires y to be passed"):
        checked_points(CaGATClassifier(), X, None)
