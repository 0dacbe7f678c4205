"""A linear layer whose input may be sparse."""

from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import Linear

from cagat.nn import SparseFeatures, feature_dropout
from cagat.nn.sparse_features import as_features
from cagat.nn.validation import require_finite, require_fitting, require_sizes


class FeatureLinear(Linear):  # type: ignore[misc]
    r"""PyG's linear layer, with dropout on its input, for dense and for sparse features.

    .. math::
        Y = \mathrm{dropout}(X)\, W^T + b

    A sparse :math:`X` makes it several times faster on bags of words: neither the dropout nor the product touches a
    zero.
    """

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0, bias: bool = True) -> None:
        require_sizes(in_channels=in_channels, out_channels=out_channels)
        super().__init__(in_channels, out_channels, bias, weight_initializer="glorot", bias_initializer="zeros")
        self.dropout = dropout

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:
        """The transformed features."""
        given = as_features(x)
        require_fitting("x", given, self.weight, "in_channels")
        features = feature_dropout(given, self.dropout, self.training)
        if isinstance(features, SparseFeatures):
            y = features.matmul(self.weight.t())
            y = y if self.bias is None else y + self.bias
        else:
            y = F.linear(features, self.weight, self.bias)
        require_finite(y, given, None, self.parameters())
        return y


def dense_features(x: Tensor | SparseFeatures) -> Tensor:
    """The features as a dense tensor."""
    features = as_features(x)
    return features.to_dense() if isinstance(features, SparseFeatures) else features
