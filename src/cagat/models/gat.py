"""Graph attention networks, the baseline."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATConv, MessagePassing

from cagat.models.node_classifier import NodeClassifier
from cagat.models.parameter_groups import decay_only, weights_of


class GAT(NodeClassifier):
    r"""The two-layer network of `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_ with PyG's layers.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of each head of the hidden layer.
        out_channels: Number of classes.
        heads: Number of heads of the hidden layer. (default: ``8``)
        dropout: Dropout on the input of each layer in training. (default: ``0.6``)
        attention_dropout: Dropout on the attention in training. (default: ``0.6``)
        decay_biases: Whether biases decay, as in the authors' code, or only weights. (default: ``True``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`; edges :math:`(2, |E|)`
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_weights = False
    layer: ClassVar[type[MessagePassing]] = GATConv
    hyperparameters: ClassVar[Mapping[str, str]] = {
        "hidden": "hidden_channels",
        "heads": "heads",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "decay_biases": "decay_biases",
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: int = 8,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
        decay_biases: bool = True,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.decay_biases = decay_biases
        self.conv1 = self.layer(in_channels, hidden_channels, heads, dropout=attention_dropout)
        self.conv2 = self.layer(hidden_channels * heads, out_channels, heads=1, concat=False, dropout=attention_dropout)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes; edge weights are not looked at."""
        logits: Tensor = self.conv2(self.embed(x, edge_index), edge_index)
        return logits

    def embed(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.conv1(x, edge_index))
        return F.dropout(x, self.dropout, self.training)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """All parameters decay, or all that are not biases."""
        return decay_only(self, list(self.parameters()) if self.decay_biases else weights_of(self), weight_decay)
