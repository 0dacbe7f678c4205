"""Simplified graph convolution."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from cagat.models.appnp import PersonalizedPageRank
from cagat.models.feature_linear import FeatureLinear, dense_features
from cagat.models.node_classifier import Features, NodeClassifier
from cagat.nn.validation import require_sizes


class SGC(NodeClassifier):
    r"""The linear model of `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_, Eq. (8).

    .. math::
        \hat{A}^K X W + b

    It equals PyG's :class:`~torch_geometric.nn.SGConv`, but multiplies from the right: :math:`\hat{A}^K (X W)` has as
    many columns as there are classes, and lets :math:`X` stay sparse.

    Args:
        in_channels: Number of input features.
        out_channels: Number of classes.
        K: Number of steps of the propagation. (default: ``2``)
    """

    takes_sparse = True
    hyperparameters: ClassVar[Mapping[str, str]] = {"steps": "K"}

    def __init__(self, in_channels: int, out_channels: int, K: int = 2) -> None:
        require_sizes(in_channels=in_channels, out_channels=out_channels)
        super().__init__()
        self.lin = FeatureLinear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))
        self.propagation = PersonalizedPageRank(K, alpha=0.0)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.propagation(self.lin(x), edge_index, edge_attr) + self.bias
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The propagated features."""
        propagated: Tensor = self.propagation(dense_features(x), edge_index, edge_attr)
        return propagated
