"""Graph convolutional networks: GCN, and GraphSAGE with the mean aggregator."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GCNConv, MessagePassing, SAGEConv

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.kernels.operators import has_kernel, is_traced
from cagat.models.mlp import FeatureLinear
from cagat.models.node_classifier import NodeClassifier, arguments
from cagat.nn import Features, feature_dropout
from cagat.nn.validation import require_sizes


class GraphConvolution(GCNConv):  # type: ignore[misc]
    r"""PyG's :class:`~torch_geometric.nn.GCNConv` with dropout on its input, our sparse product and sparse features.

    .. math::
        Y = \hat{A}\, \mathrm{dropout}(X) W + b, \qquad \hat{A} = D^{-1/2} (A + I) D^{-1/2}

    Parameters, their initialisation and the result are PyG's; an edge that is given twice without weights counts once.
    """

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = FeatureLinear(in_channels, out_channels, dropout, bias=False)

    def forward(self, x: Features, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
        """The convolved features."""
        y: Tensor = propagate(self.lin(x), edge_index, edge_weight) + self.bias
        return y


class GCN(NodeClassifier):
    r"""Two graph convolutions.

    The paper is `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_.

    .. math::
        \hat{A}\, \mathrm{relu}(\hat{A} X W_0) W_1

    Args:
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)
    """

    takes_sparse = True
    layer: ClassVar[type[MessagePassing]] = GraphConvolution
    hyperparameters = arguments("dropout", hidden="hidden_channels")

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5) -> None:
        require_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        super().__init__()
        self.conv1 = self.layer(in_channels, hidden_channels, dropout)
        self.conv2 = self.layer(hidden_channels, out_channels, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.conv2(self.embed(x, edge_index, edge_attr), edge_index, edge_attr)
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        return F.relu(self.conv1(x, edge_index, edge_attr))

    def decaying(self) -> list[torch.nn.Parameter]:
        """Only the weights of the first layer, as in the authors' code."""
        return [self.conv1.lin.weight]


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
        z: Tensor = self.lin_l(x)
        graph = edge_index
        if not isinstance(graph, CSRGraph):
            graph = prepare_graph(graph, x.shape[0], dtype=z.dtype)
        y: Tensor = spmm(graph.pattern, graph.transition("row", z.dtype), z) + self.lin_r(x)
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


def propagate(z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
    r"""The product :math:`\hat{A} Z`."""
    graph = gcn_graph(z, edge_index, edge_weight)
    return spmm(graph.pattern, graph.transition("sym", z.dtype), z)


def gcn_graph(z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> CSRGraph:
    r"""The graph whose symmetric transition is :math:`\hat{A}`, remembered as long as ``edge_index`` lives."""
    if isinstance(edge_index, CSRGraph):
        return edge_index
    graph: CSRGraph = prepare_graph(edge_index, z.size(0), edge_weight, normalization="sym", dtype=z.dtype)
    return graph


def can_be_compiled(graph: CSRGraph, z: Tensor, *weights: Tensor) -> bool:
    """Whether nobody traces, who would have to see operators, and compiled loops take such tensors and indices."""
    is_alike = all(weight.dtype == z.dtype and weight.device == z.device for weight in weights)
    return has_kernel(z) and is_alike and not is_traced(z) and graph.pattern.col.dtype == torch.int32 and z.size(0) > 0
