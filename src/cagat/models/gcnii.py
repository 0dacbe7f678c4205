"""GCNII: a graph convolutional network that stays accurate with many layers."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GCN2Conv

from cagat.kernels import CSRGraph, dropout, spmm
from cagat.models.gcn import gcn_graph
from cagat.models.mlp import FeatureLinear
from cagat.models.node_classifier import NodeClassifier, arguments
from cagat.nn import Features
from cagat.nn.validation import require_sizes


class InitialResidualConvolution(GCN2Conv):  # type: ignore[misc]
    r"""PyG's :class:`~torch_geometric.nn.GCN2Conv` by our sparse product.

    .. math::
        Y = \big( (1 - \alpha) \hat{A} X + \alpha X_0 \big) \big( (1 - \beta) I + \beta W \big), \qquad
        \beta = \log(\theta / \ell + 1)

    Parameters, their initialisation and the result are PyG's; an edge that is given twice without weights counts once.
    """

    def forward(
        self, x: Tensor, x_0: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The convolved features of layer ``self.layer`` of a network whose first representation is ``x_0``."""
        graph = gcn_graph(x, edge_index, edge_weight)
        # Weights of edges and of channels are scaled in the place of features, which are more.
        by_row, by_column = graph.transition("sym", x.dtype)
        weights = ((1 - self.alpha) * by_row, (1 - self.alpha) * by_column)
        mixed = torch.add(spmm(graph.pattern, weights, x), x_0, alpha=self.alpha)
        identity = torch.eye(self.channels, dtype=x.dtype, device=x.device)
        return mixed @ torch.lerp(identity, self.weight1, self.beta)


class GCNII(NodeClassifier):
    r"""A perceptron's hidden layer, many convolutions that each return to it, and a linear layer.

    The paper is `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_, Eq. (5).

    .. math::
        H_0 = \mathrm{relu}(X W_{in} + b_{in}), \qquad
        H_\ell = \mathrm{relu}\Big( \big( (1 - \alpha) \hat{A} H_{\ell-1} + \alpha H_0 \big)
        \big( (1 - \beta_\ell) I + \beta_\ell W_\ell \big) \Big), \qquad \beta_\ell = \log(\theta / \ell + 1)

    Args:
        layers: Number of convolutions. (default: ``64``)
        alpha: Share of the first representation in each. (default: ``0.1``)
        theta: How far the weights of a convolution are from the identity; the paper's :math:`\lambda`.
            (default: ``0.5``)
        dropout: Dropout on the input of each layer in training. (default: ``0.6``)
        dense_weight_decay: Weight decay of the first and the last layer, which are not convolutions.
            (default: ``5e-4``)
    """

    takes_sparse = True
    hyperparameters = arguments("layers", "alpha", "theta", "dropout", "dense_weight_decay", hidden="hidden_channels")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: int = 64,
        alpha: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.6,
        dense_weight_decay: float = 5e-4,
    ) -> None:
        require_sizes(hidden_channels=hidden_channels, layers=layers)
        super().__init__()
        self.dropout, self.dense_weight_decay = dropout, dense_weight_decay
        self.lin1 = FeatureLinear(in_channels, hidden_channels, dropout)
        self.convs = torch.nn.ModuleList(
            InitialResidualConvolution(hidden_channels, alpha, theta, layer) for layer in range(1, layers + 1)
        )
        self.lin2 = FeatureLinear(hidden_channels, out_channels, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.lin2(self.embed(x, edge_index, edge_attr))
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the last convolution."""
        start = F.relu(self.lin1(x))
        graph, hidden = gcn_graph(start, edge_index, edge_attr), start
        for conv in self.convs:
            hidden = F.relu(conv(dropout(hidden, self.dropout, self.training), start, graph))
        return hidden

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The convolutions with the given weight decay, and the two other layers with one of their own."""
        dense = [*self.lin1.parameters(), *self.lin2.parameters()]
        return [
            {"params": list(self.convs.parameters()), "weight_decay": weight_decay},
            {"params": dense, "weight_decay": self.dense_weight_decay},
        ]
