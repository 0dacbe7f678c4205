"""GraphSAGE's convolution, which takes sparse features and prepares its graph once."""

import torch
from torch import Tensor
from torch_geometric.nn import SAGEConv

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.models.feature_linear import FeatureLinear
from cagat.nn import SparseFeatures, feature_dropout


class MeanConvolution(SAGEConv):  # type: ignore[misc]
    r"""PyG's :class:`~torch_geometric.nn.SAGEConv`, which transforms before it takes the mean.

    .. math::
        y_i = W_2 x_i + \mathrm{mean}_{j \in N(i) \cup \{i\}} (W_1 x_j + b), \qquad y_i / \max(1, \|y_i\|_2)

    The mean of what is transformed is what the mean is transformed to, but has fewer columns than a bag of words. The
    output is scaled down to length 1 where it is longer, as in `"Pitfalls of Graph Neural Network Evaluation"
    <https://arxiv.org/abs/1811.05868>`_ and in PyG at that time; today's PyG also scales up.

    Args:
        in_channels: Number of input features.
        out_channels: Number of units.
        dropout: Dropout on the input in training. (default: ``0``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`
        - **output:** :math:`(n, F_{out})`
    """

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.dropout = dropout
        self.lin_l = FeatureLinear(in_channels, out_channels)
        self.lin_r = FeatureLinear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph) -> Tensor:
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
