"""Graph attention networks, the baseline."""

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATConv


class GAT(torch.nn.Module):
    r"""The two-layer network of `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_ with PyG's layers.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of each head of the hidden layer.
        out_channels: Number of classes.
        heads: Number of heads of the hidden layer. (default: ``8``)
        dropout: Dropout on the input of each layer and on the attention in training. (default: ``0.6``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`; edges :math:`(2, |E|)`
        - **output:** logits :math:`(n, F_{out})`
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, heads: int = 8, dropout: float = 0.6
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = GATConv(in_channels, hidden_channels, heads, dropout=dropout)
        self.conv2 = GATConv(hidden_channels * heads, out_channels, heads=1, concat=False, dropout=dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The logits of all nodes."""
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, self.dropout, self.training)
        logits: Tensor = self.conv2(x, edge_index)
        return logits
