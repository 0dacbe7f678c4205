"""A perceptron that does not look at the edges."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.models.feature_linear import FeatureLinear
from cagat.models.node_classifier import Features, NodeClassifier, weights_of
from cagat.nn.validation import require_sizes


class MLP(NodeClassifier):
    r"""A perceptron with one hidden layer.

    It is the one of `"Pitfalls of Graph Neural Network Evaluation" <https://arxiv.org/abs/1811.05868>`_.

    .. math::
        \mathrm{dropout}(\mathrm{relu}(\mathrm{dropout}(X) W_0 + b_0)) W_1 + b_1

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of the hidden layer.
        out_channels: Number of classes.
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)
    """

    takes_sparse = True
    takes_weights = False
    hyperparameters: ClassVar[Mapping[str, str]] = {"hidden": "hidden_channels", "dropout": "dropout"}

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5) -> None:
        require_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        super().__init__()
        self.lin1 = FeatureLinear(in_channels, hidden_channels, dropout)
        self.lin2 = FeatureLinear(hidden_channels, out_channels, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.lin2(self.embed(x, edge_index))
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        return F.relu(self.lin1(x))

    def decaying(self) -> list[torch.nn.Parameter]:
        """Weights decay, biases do not."""
        return weights_of(self)
