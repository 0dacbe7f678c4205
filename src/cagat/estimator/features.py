"""The rows of X: scaled, as tensors, and recognised when they come again."""

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from cagat.data import normalize_features
from cagat.data.converters import sparse_tensor

STANDARD = "standard"  # The scaling of columns; cagat.data.normalize_features has those of rows.


class FeatureScaling:
    """Scales rows as :func:`cagat.data.normalize_features` does, or columns to mean 0 and equal variances.

    `"standard"` is that of columns, whose variances then sum to 1; sparse columns are not centred.
    """

    def __init__(self, features: Any, norm: str) -> None:
        self.norm: Any = norm
        self.is_sparse = bool(sparse.issparse(features))
        self._columns = StandardScaler(with_mean=not self.is_sparse).fit(features) if norm == STANDARD else None

    def __call__(self, features: Any) -> Any:
        """The scaled features, as a new array or CSR matrix."""
        if self.is_sparse:
            features = sparse.csr_array(features, copy=True)
            features.sum_duplicates()
        elif sparse.issparse(features):
            features = features.toarray()
        if self._columns is not None:
            # Rows of length about 1, as the presets know them: the affinity of Eq. 15 grows with the square of the
            # length, and for 64 columns of variance 1 it makes training diverge.
            return (self._columns.transform(features) / np.sqrt(features.shape[1])).astype(np.float32)
        if not self.is_sparse:
            return normalize_features(torch.tensor(features), self.norm).numpy()
        features.data = normalize_features(as_tensor(features), self.norm).values().numpy()
        return features


def as_tensor(features: Any) -> torch.Tensor:
    """Features as a dense tensor, or as a sparse CSR one if they are sparse."""
    return sparse_tensor(features) if sparse.issparse(features) else torch.tensor(features)


def stacked(first: Any, second: Any) -> Any:
    """The rows of one matrix, then those of another of the same form."""
    return sparse.vstack([first, second], format="csr") if sparse.issparse(first) else np.concatenate([first, second])


def row_digests(rows: Any) -> list[bytes]:
    """A digest of each row of a matrix in single precision, the same whether the row is dense or sparse."""
    matrix = sparse.csr_array(rows, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    where, values = matrix.indices.astype(np.int64), matrix.data
    return [
        blake2b(where[start:end].tobytes() + values[start:end].tobytes(), digest_size=16).digest()
        for start, end in pairwise(matrix.indptr.tolist())
    ]
