"""Dropout of features that may be sparse."""

from torch import Tensor

from cagat.kernels import dropout
from cagat.nn.arguments import as_features
from cagat.nn.sparse_features import SparseFeatures


def feature_dropout(
    x: Tensor | SparseFeatures, p: float, training: bool, places: Tensor | None = None
) -> Tensor | SparseFeatures:
    """As :func:`torch.nn.functional.dropout`; of sparse features only what is not zero is looked at.

    Args:
        x: The features.
        p: The probability with which one is dropped.
        training: Whether any is.
        places: Of dense features that are some rows of more, which ones; see :func:`cagat.kernels.dropout`. Sparse ones
            know their own.
    """
    features = as_features(x)
    if isinstance(features, SparseFeatures):
        return features.dropout(p, training)
    return dropout(features, p, training, places)
