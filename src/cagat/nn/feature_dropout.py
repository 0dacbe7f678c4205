"""Dropout of features that may be sparse."""

from torch import Tensor

from cagat.kernels import dropout
from cagat.nn.arguments import as_features
from cagat.nn.sparse_features import SparseFeatures


def feature_dropout(
    x: Tensor | SparseFeatures, p: float, training: bool, global_rows: Tensor | None = None
) -> Tensor | SparseFeatures:
    """As :func:`torch.nn.functional.dropout`; of sparse features only what is not zero is looked at.

    Args:
        x: The features.
        p: The probability with which one is dropped.
        training: Whether any is.
        global_rows: For dense features that are some rows of a larger matrix; see :func:`cagat.kernels.dropout`. Sparse
            features know their own.
    """
    features = as_features(x)
    if isinstance(features, SparseFeatures):
        return features.dropout(p, training)
    return dropout(features, p, training, global_rows)
