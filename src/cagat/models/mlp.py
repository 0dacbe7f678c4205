"""A perceptron that does not look at the edges, and its linear layer, whose input may be sparse."""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import Linear

from cagat.models.node_classifier import Features, NodeClassifier, arguments, weights_of
from cagat.nn import SparseFeatures, feature_dropout
from cagat.nn.sparse_features import as_features
from cagat.nn.validation import require_finite, require_fitting, require_sizes


class MLP(NodeClassifier):
    r"""A perceptron with one hidden layer.

    It is the one of `"Pitfalls of Graph Neural Network Evaluation" <https://arxiv.org/abs/1811.05868>`_.

    .. math::
        \mathrm{dropout}(\mathrm{relu}(\mathrm{dropout}(X) W_0 + b_0)) W_1 + b_1

    Args:
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)
        bias: Whether the layers have biases. (default: ``True``)
    """

    takes_sparse = True
    takes_weights = False
    hyperparameters = arguments("dropout", hidden="hidden_channels")

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5, bias: bool = True
    ) -> None:
        require_sizes(hidden_channels=hidden_channels)
        super().__init__()
        self.lin1 = FeatureLinear(in_channels, hidden_channels, dropout, bias)
        self.lin2 = FeatureLinear(hidden_channels, out_channels, dropout, bias)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.lin2(self.embed(x, edge_index))
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer, which knows nothing of the edges."""
        return F.relu(self.lin1(x))

    def decaying(self) -> list[torch.nn.Parameter]:
        """Weights decay, biases do not."""
        return weights_of(self)


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

    def forward(self, x: Features) -> Tensor:
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


def dense_features(x: Features) -> Tensor:
    """The features as a dense tensor."""
    features = as_features(x)
    return features.to_dense() if isinstance(features, SparseFeatures) else features
