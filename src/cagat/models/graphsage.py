"""GraphSAGE with the mean aggregator."""

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.models.feature_linear import FeatureLinear
from cagat.models.gcn import GCN
from cagat.models.node_classifier import Features
from cagat.nn import feature_dropout


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

    def forward(self, x: Features, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
        """The convolved features; edge weights are not looked at."""
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


class GraphSAGE(GCN):
    """The two-layer network of :class:`GCN` with the mean aggregator; no row of logits is longer than 1.

    The paper is `"Inductive Representation Learning on Large Graphs" <https://arxiv.org/abs/1706.02216>`_.
    The arguments are those of :class:`~cagat.models.GCN`.
    """

    takes_weights = False
    layer = MeanConvolution

    def decaying(self) -> list[torch.nn.Parameter]:
        """Only the weights of the first layer, as in the benchmark's code."""
        return [self.conv1.lin_l.weight, self.conv1.lin_r.weight]
