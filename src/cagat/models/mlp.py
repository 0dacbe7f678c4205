"""Models of the features alone, a perceptron and softmax regression, and their linear layer for sparse features."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import Linear

from cagat.models.node_classifier import Labelled, NodeClassifier, arguments, weights_of
from cagat.nn import Features, SparseFeatures, as_features, feature_dropout
from cagat.nn.validation import require_finite, require_fitting, require_sizes

# What the logit of a class is lowered by that no training node has: its probability is as good as 0, yet its
# logarithm stays a number. The optimum would be infinitely low.
_ABSENT = 80.0


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


class LogReg(NodeClassifier):
    r"""Softmax regression with an L2 penalty, solved by scikit-learn.

    .. math::
        \min_{W, b} \frac{1}{n} \sum_i -\log \mathrm{softmax}(x_i W + b)_{y_i} + \frac{\mu}{2} \|W\|^2

    Args:
        weight_decay: The penalty :math:`\mu`; scikit-learn's ``C`` is :math:`1 / (\mu n)`. (default: ``5e-4``)
    """

    takes_sparse = True
    closed_form = True
    takes_weights = False
    hyperparameters = arguments("weight_decay")

    def __init__(self, in_channels: int, out_channels: int, weight_decay: float = 5e-4) -> None:
        super().__init__()
        self.weight_decay = weight_decay
        self.lin = FeatureLinear(in_channels, out_channels)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.lin(x)
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The features themselves: there is no hidden layer."""
        return dense_features(x)

    @torch.no_grad()
    def solve(self, inputs: tuple[Any, ...], train: Labelled) -> None:
        """Find the weights."""
        present = torch.unique(train.classes)
        self.lin.weight.zero_()
        self.lin.bias.fill_(-_ABSENT)
        self.lin.bias[present] = 0
        if present.numel() == 1:
            return  # Whatever the features, it is the one class there is.
        from sklearn.linear_model import LogisticRegression

        C = 1 / (self.weight_decay * train.classes.numel()) if self.weight_decay > 0 else float("inf")
        binary = present.numel() == 2
        # With two classes, scikit-learn has one vector w for both, where softmax has -w/2 and w/2, with half the norm
        # squared: twice C makes up for it.
        weights = None if train.class_weight is None else dict(enumerate(train.class_weight.tolist()))
        solver = LogisticRegression(C=2 * C if binary else C, max_iter=10_000, class_weight=weights)
        features = as_features(inputs[0])
        if isinstance(features, SparseFeatures):
            from scipy.sparse import csr_matrix

            parts = (features.values, features.pattern.col, features.pattern.rowptr)
            x = csr_matrix(tuple(part.cpu().numpy() for part in parts), shape=features.shape)[train.nodes.cpu().numpy()]
        else:
            x = features[train.nodes].cpu().numpy()
        solver.fit(x, train.classes.cpu().numpy())
        weight, bias = solver.coef_, solver.intercept_
        if binary:
            weight, bias = weight * [[-0.5], [0.5]], bias * [-0.5, 0.5]
        self.lin.weight[present] = torch.from_numpy(weight).to(self.lin.weight)
        self.lin.bias[present] = torch.from_numpy(bias).to(self.lin.bias)


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
