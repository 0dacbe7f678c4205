"""GraphSAGE with the mean aggregator."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import SAGEConv

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.models.feature_linear import FeatureLinear
from cagat.models.node_classifier import Features, NodeClassifier
from cagat.nn import feature_dropout
from cagat.nn.validation import require_sizes


class GraphSAGE(NodeClassifier):
    """Two layers with the mean aggregator, trained full-batch; no row of logits is longer than 1.

    The paper is `"Inductive Representation Learning on Large Graphs" <https://arxiv.org/abs/1706.02216>`_.

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
        self.conv1 = MeanConvolution(in_channels, hidden_channels, dropout)
        self.conv2 = MeanConvolution(hidden_channels, out_channels, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes; edge weights are not looked at."""
        logits: Tensor = self.conv2(self.embed(x, edge_index), edge_index)
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        return F.relu(self.conv1(x, edge_index))

    def decaying(self) -> list[torch.nn.Parameter]:
        """Only the weights of the first layer, as in the benchmark's code."""
        return [self.conv1.lin_l.weight, self.conv1.lin_r.weight]


class MeanConvolution(SAGEConv):  # type: ignore[misc]
    r"""PyG's :class:`~torch_geometric.nn.SAGEConv`, which transforms before it averages.

    .. math::
        y_i = W_2 x_i + \mathrm{mean}_{j \in N(i) \cup \{i\}} (W_1 x_j + b), \qquad y_i / \max(1, \|y_i\|_2)

    The result is the same, but what is averaged has fewer columns than a bag of words. The output is scaled down to
    length 1 where it is longer, as in `"Pitfalls of Graph Neural Network Evaluation"
    <https://arxiv.org/abs/1811.05868>`_ and in PyG at that time; today's PyG also scales up.
    """

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.dropout = dropout
        self.lin_l = FeatureLinear(in_channels, out_channels)
        self.lin_r = FeatureLinear(in_channels, out_channels, bias=False)

    def forward(self, x: Features, edge_index: Tensor | CSRGraph) -> Tensor:
        """The convolved features."""
        # Both products take the same dropped features, as in the benchmark's code.
        x = feature_dropout(x, self.dropout, self.training)
        graph = edge_index
        if not isinstance(graph, CSRGraph):
            graph = prepare_graph(graph, x.shape[0], dtype=self.lin_l.weight.dtype)
        transformed: Tensor = self.lin_l(x)
        mean = spmm(graph.pattern, graph.transition("row", transformed.dtype), transformed)
        y: Tensor = mean + self.lin_r(x)
        length: Tensor = torch.linalg.vector_norm(y, dim=1, keepdim=True)
        return y / length.clamp(min=1)
