"""GRAND: features of random nodes are dropped, then the rest is propagated, then a perceptron predicts."""

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph, dropout
from cagat.memory import require_memory
from cagat.models.appnp import PersonalizedPageRank
from cagat.models.gcn import gcn_graph
from cagat.models.mlp import FeatureLinear
from cagat.models.node_classifier import NodeClassifier, arguments
from cagat.nn import Features, SparseFeatures, as_features
from cagat.nn.validation import require_finite, require_fitting, require_sizes

# So many columns are propagated at a time: on Cora and PubMed all at once took longer.
_COLUMNS = 64


class GRAND(NodeClassifier):
    r"""A perceptron on features that are propagated anew in each training step, without those of some nodes.

    The paper is `"Graph Random Neural Networks for Semi-Supervised Learning on Graphs"
    <https://arxiv.org/abs/2005.11079>`_.

    .. math::
        \bar{X} = \frac{1}{K + 1} \sum_{k=0}^{K} \hat{A}^k \, \mathrm{diag}(\epsilon) X, \qquad
        \mathrm{dropout}\big( \mathrm{relu}(\mathrm{dropout}(\bar{X}) W_0 + b_0) \big) W_1 + b_1

    In training, :math:`\epsilon_i` is 0 with the probability ``dropnode`` and otherwise 1 / (1 - ``dropnode``); in
    evaluation it is 1. That predictions should agree whatever was dropped is the objective's part
    (`--objective consistent`, which the preset asks for).

    Without dropout on :math:`\bar{X}`, which includes evaluation, :math:`X W_0` is propagated in the place of
    :math:`X`: the result is the same, with far fewer columns.

    Args:
        K: Number of steps of the propagation. (default: ``8``)
        dropnode: Probability that a node's features are dropped in training. (default: ``0.5``)
        input_dropout: Dropout on the propagated features in training. (default: ``0.5``)
        dropout: Dropout on the hidden layer in training. (default: ``0.5``)
    """

    takes_sparse = True
    hyperparameters = arguments("dropnode", "input_dropout", "dropout", hidden="hidden_channels", steps="K")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        K: int = 8,
        dropnode: float = 0.5,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        require_sizes(hidden_channels=hidden_channels)
        super().__init__()
        self.dropnode = dropnode
        self.propagation = MixedOrderPropagation(K)
        self.lin1 = FeatureLinear(in_channels, hidden_channels, input_dropout, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(hidden_channels))
        self.lin2 = FeatureLinear(hidden_channels, out_channels, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.lin2(self.embed(x, edge_index, edge_attr))
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        features = as_features(x)
        kept = dropout(self.bias.new_ones(features.shape[0], 1), self.dropnode, self.training)
        if self.training and self.lin1.dropout > 0:
            require_fitting("x", features, self.lin1.weight, "in_channels")
            z = self.lin1(self._propagate_features(features, kept, edge_index, edge_attr))
        else:
            z = self.propagation(kept * self.lin1(features), edge_index, edge_attr)
        return F.relu(z + self.bias)

    def _propagate_features(
        self, features: Features, kept: Tensor, edge_index: Tensor | CSRGraph, edge_attr: Tensor | None
    ) -> Tensor:
        """The propagated features, which are dense."""
        if isinstance(features, SparseFeatures):
            rows, columns = features.shape
            require_memory(
                5 * features.values.element_size() * rows * columns,
                f"GRAND's propagation of {rows} x {columns} features, which makes them dense,",
                "Set input_dropout to 0: then the output of the first layer is propagated in their place.",
            )
            row = features.pattern.rows()
            dropped = kept.new_zeros(rows, columns)
            dropped[row, features.pattern.col] = features.values * kept[row, 0]
        else:
            dropped = features * kept
        graph = gcn_graph(dropped, edge_index, edge_attr)
        propagated = torch.cat([self.propagation(part, graph) for part in torch.split(dropped, _COLUMNS, dim=1)], dim=1)
        require_finite(propagated, features, None, ())
        return propagated


class MixedOrderPropagation(PersonalizedPageRank):
    r"""The propagation of `GRAND <https://arxiv.org/abs/2005.11079>`_, :math:`\frac{1}{K+1} \sum_{k=0}^K \hat{A}^k Z`.

    By Horner's rule it is a propagation with return, :math:`Z^{(k)} = \hat{A} Z^{(k-1)} + Z^{(0)}`.
    """

    def __init__(self, K: int) -> None:
        super().__init__(K, alpha=1.0)
        self.scale = 1.0

    def forward(self, z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
        """The propagated features."""
        return super().forward(z / (self.K + 1), edge_index, edge_weight)

    def extra_repr(self) -> str:
        """The argument, for `print`."""
        return f"K={self.K}"
