"""The rows that a classifier is given."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from cagat.errors import NonFiniteError


def checked_points(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """X in single precision, dense or CSR, as scikit-learn checks it.

    Args:
        estimator: Who is given them.
        X: One row a node.
        y: ``None`` if labels are missing that must be there.
        **options: Further ones of scikit-learn's ``validate_data``.

    Raises:
        NonFiniteError: A value is infinite. Scikit-learn's message, which its users know, does not say what to do.
    """
    try:
        return validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float32, **options)
    except ValueError as error:
        if "infinity" not in str(error):
            raise
        raise NonFiniteError(
            f"{error} Remove or replace it, for instance with numpy.nan_to_num, or scale X."
        ) from error
