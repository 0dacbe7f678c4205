"""pandas frames with columns of any kind: which need an encoder, and how their rows are recognised."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from cagat.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from cagat.data.encoding import TableEncoder


def is_frame(X: Any) -> bool:
    """Whether X is a pandas frame; pandas is not imported for that."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def needs_encoder(X: Any, columns: Any) -> bool:
    """Whether X is a frame that is not all numbers: it has other columns or gaps, or kinds were given for some."""
    if columns is not None and not isinstance(columns, Mapping):
        raise ConfigError(f'columns must say what columns are, such as {{"age": "number"}}, but is {columns!r:.80}.')
    if columns and not is_frame(X):
        raise ConfigError(
            f"columns says what columns of a pandas frame are, but X is a {type(X).__name__}. Pass a frame, or leave "
            "columns out."
        )
    if not is_frame(X):
        return False
    from pandas.api.types import is_numeric_dtype

    return bool(columns) or not all(map(is_numeric_dtype, X.dtypes)) or bool(X.isna().to_numpy().any())


def fitted_encoder(estimator: Any, frame: Any, y: Any, columns: Mapping[str, str] | None) -> "TableEncoder":
    """An encoder for the columns of a frame; the estimator notes their number and names."""
    from cagat.data.encoding import TableEncoder  # It brings skrub, which other X do without.

    validate_data(estimator, frame, y, skip_check_array=True)
    return TableEncoder.fit(frame, kinds=dict(columns) if columns else None, what="X")


def encoded(estimator: Any, encoder: "TableEncoder", frame: Any, **options: Any) -> Any:
    """A frame with the columns that were fitted, as a matrix in single precision, dense or CSR."""
    if not is_frame(frame):
        raise DatasetError(
            f"The classifier was fitted to a pandas frame whose columns were encoded, so X must be a frame with the "
            f"same columns, but is a {type(frame).__name__}."
        )
    validate_data(estimator, frame, reset=False, skip_check_array=True)
    matrix = encoder.transform(frame, what="X")
    return check_array(matrix, accept_sparse="csr", dtype=np.float32, estimator=estimator, **options)


def frame_digests(frame: Any) -> list[bytes]:
    """A digest of each row of a frame as it is, which does not depend on the other rows."""
    from pandas.util import hash_pandas_object

    return [digest.tobytes() for digest in hash_pandas_object(frame, index=False).to_numpy()]
