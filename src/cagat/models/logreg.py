"""Logistic regression on the features alone."""

from typing import Any

import torch
from torch import Tensor

from cagat.models.mlp import FeatureLinear, dense_features
from cagat.models.node_classifier import Features, Labelled, NodeClassifier, arguments
from cagat.nn.sparse_features import as_features

# What the logit of a class is lowered by that no training node has: its probability is as good as 0, yet its
# logarithm stays a number. The optimum would be infinitely low.
_ABSENT = 80.0


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
        solver = LogisticRegression(C=2 * C if binary else C, max_iter=10_000)
        solver.fit(_rows(as_features(inputs[0]), train.nodes), train.classes.cpu().numpy())
        weight, bias = solver.coef_, solver.intercept_
        if binary:
            weight, bias = weight * [[-0.5], [0.5]], bias * [-0.5, 0.5]
        self.lin.weight[present] = torch.from_numpy(weight).to(self.lin.weight)
        self.lin.bias[present] = torch.from_numpy(bias).to(self.lin.bias)


def _rows(features: Features, nodes: Tensor) -> Any:
    """Some rows of the features, as scikit-learn takes them."""
    if isinstance(features, Tensor):
        return features[nodes].cpu().numpy()
    from scipy.sparse import csr_matrix

    pattern = features.pattern
    parts = (part.cpu().numpy() for part in (features.values, pattern.col, pattern.rowptr))
    return csr_matrix(tuple(parts), shape=features.shape)[nodes.cpu().numpy()]
