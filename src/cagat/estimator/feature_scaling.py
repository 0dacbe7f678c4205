"""Scaling of the features, of those fitted to and of those that come later."""

import warnings
from typing import Any, get_args

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from cagat.data import normalize_features
from cagat.data.features import Normalization
from cagat.errors import ConfigError

STANDARD = "standard"


class FeatureScaling:
    """Scales rows as :func:`cagat.data.normalize_features` does, or columns to one mean, 0, and one variance.

    Args:
        features: What is fitted to: single precision, dense or CSR. Features that come later get its form.
        norm: `"l1"`, `"l2"`, `"binary"`, `"none"`, or `"standard"` for columns, whose variances then
            sum to 1; sparse columns are not centred.
    """

    def __init__(self, features: Any, norm: str) -> None:
        choices = (*get_args(Normalization), STANDARD)
        if norm not in choices:
            raise ConfigError(f"feature_norm must be one of {', '.join(choices)}, got {norm!r}.")
        self.norm: Any = norm
        self.is_sparse = bool(sparse.issparse(features))
        self._columns = StandardScaler(with_mean=not self.is_sparse) if norm == STANDARD else None
        if self._columns is not None:
            self._columns.fit(features)

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
            scaled: Any = self._columns.transform(features) / np.sqrt(features.shape[1])
            return scaled.astype(np.float32)
        if not self.is_sparse:
            return normalize_features(torch.tensor(features), self.norm).numpy()
        features.data = normalize_features(as_tensor(features), self.norm).values().numpy()
        return features


def as_tensor(features: Any) -> torch.Tensor:
    """Features as a dense tensor, or as a sparse CSR one if they are sparse."""
    if not sparse.issparse(features):
        return torch.tensor(features)
    parts = (features.indptr.astype(np.int64), features.indices.astype(np.int64), features.data.copy())
    rows, columns, values = (torch.from_numpy(part) for part in parts)
    with warnings.catch_warnings():
        # torch says once a process that its CSR tensors are in beta, which the user of a classifier need not know.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(rows, columns, values, size=features.shape, check_invariants=False)


def stacked(first: Any, second: Any) -> Any:
    """The rows of one matrix, then those of another of the same form."""
    if not sparse.issparse(first):
        return np.concatenate([first, second])
    return sparse.csr_array(sparse.vstack([first, second]))
