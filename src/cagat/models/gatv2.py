"""Graph attention networks with dynamic attention."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv

from cagat.models.node_classifier import NodeClassifier


class GATv2(NodeClassifier):
    r"""The two-layer network of GAT with dynamic attention, by PyG's layers.

    The paper is `"How Attentive are Graph Attention Networks?" <https://arxiv.org/abs/2105.14491>`_.

    .. math::
        G_{ij} = \mathrm{softmax}_j\, a^T \mathrm{LeakyReLU}(W_{dst} x_i + W_{src} x_j)

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of each head of the hidden layer.
        out_channels: Number of classes.
        heads: Number of heads of the hidden layer. (default: ``8``)
        dropout: Dropout on the input of each layer in training. (default: ``0.6``)
        attention_dropout: Dropout on the attention in training. (default: ``0.6``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`; edges :math:`(2, |E|)`
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_weights = False
    hyperparameters: ClassVar[Mapping[str, str]] = {
        "hidden": "hidden_channels",
        "heads": "heads",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: int = 8,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = GATv2Conv(in_channels, hidden_channels, heads, dropout=attention_dropout)
        self.conv2 = GATv2Conv(hidden_channels * heads, out_channels, heads=1, concat=False, dropout=attention_dropout)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes; edge weights are not looked at."""
        logits: Tensor = self.conv2(self.embed(x, edge_index), edge_index)
        return logits

    def embed(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.conv1(x, edge_index))
        return F.dropout(x, self.dropout, self.training)
