"""Dropout of features that may be sparse."""

from torch import Tensor

from cagat.kernels import dropout
from cagat.nn.arguments import as_features
from cagat.nn.sparse_features import SparseFeatures


def feature_dropout(x: Tensor | SparseFeatures, p: float, training: bool) -> Tensor | SparseFeatures:
    """As :func:`torch.nn.functional.dropout`; of sparse features only what is not zero is looked at."""
    features = as_features(x)
    if isinstance(features, SparseFeatures):
        return features.dropout(p, training)
    return dropout(features, p, training)
