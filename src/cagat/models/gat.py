"""Graph attention networks, the baseline: GAT and GATv2."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATv2Conv, MessagePassing
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels import dropout
from cagat.kernels.validation import check_edges, require_dense, require_tensor
from cagat.models.node_classifier import NodeClassifier, arguments, weights_of
from cagat.nn import CaGATConv, Features, as_features, feature_dropout
from cagat.nn.validation import checked_input_size, require_finite, require_fitting, require_sizes


class GAT(NodeClassifier):
    r"""The two-layer network of `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_ .

    Its layers are PyG's :class:`~torch_geometric.nn.conv.GATConv` in parameters, their initialisation and results, by
    our products, which take sparse features and are several times faster on bags of words.

    Args:
        hidden_channels: Number of units of each head of the hidden layer.
        heads: Number of heads of the hidden layer. (default: ``8``)
        dropout: Dropout on the input of each layer in training. (default: ``0.6``)
        attention_dropout: Dropout on the attention in training. (default: ``0.6``)
        decay_biases: Whether biases decay, as in the authors' code, or only weights. (default: ``True``)
        attention_weight_decay: The weight decay of the vectors that attention is made with, if it has one of its own.
            (default: ``None``)
    """

    takes_sparse = True
    takes_weights = False
    hyperparameters = arguments(
        "heads", "dropout", "attention_dropout", "decay_biases", "attention_weight_decay", hidden="hidden_channels"
    )

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: int = 8,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
        decay_biases: bool = True,
        attention_weight_decay: float | None = None,
    ) -> None:
        in_channels = checked_input_size("in_channels", in_channels)
        require_sizes(hidden_channels=hidden_channels, out_channels=out_channels, heads=heads)
        super().__init__()
        self.dropout = dropout
        self.decay_biases, self.attention_weight_decay = decay_biases, attention_weight_decay
        self.conv1 = self.layer(in_channels, hidden_channels, heads, dropout=attention_dropout)
        self.conv2 = self.layer(hidden_channels * heads, out_channels, concat=False, dropout=attention_dropout)

    @staticmethod
    def layer(*args: Any, **kwargs: Any) -> MessagePassing:
        """A layer with the arguments of GATConv: CaGAT's without its context."""
        return CaGATConv(*args, **kwargs, alpha=0.0, xi=0.0, lam=1.0)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes; edge weights are not looked at."""
        logits: Tensor = self.conv2(self.embed(x, edge_index), edge_index)
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        hidden = F.elu(self.conv1(feature_dropout(x, self.dropout, self.training), edge_index))
        return dropout(hidden, self.dropout, self.training)

    def decaying(self) -> list[torch.nn.Parameter]:
        """All parameters, or all that are not biases."""
        return list(self.parameters()) if self.decay_biases else weights_of(self)


class GATv2(GAT):
    r"""The two-layer network of GAT with dynamic attention, by PyG's layers.

    The paper is `"How Attentive are Graph Attention Networks?" <https://arxiv.org/abs/2105.14491>`_.

    .. math::
        G_{ij} = \mathrm{softmax}_j\, a^T \mathrm{LeakyReLU}(W_{dst} x_i + W_{src} x_j)

    The arguments are those of :class:`~cagat.models.GAT`.
    """

    takes_sparse = False
    layer = GATv2Conv
    hyperparameters = arguments("heads", "dropout", "attention_dropout", hidden="hidden_channels")

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer; what PyG's layer would stumble over is refused before."""
        require_dense("x", x)
        features = as_features(x)
        require_fitting("x", features, self.conv1.lin_l.weight, "in_channels")
        require_tensor("edge_index", edge_index)
        if not torch.compiler.is_compiling() and not is_torch_sparse_tensor(edge_index):
            check_edges(edge_index, features.shape[0])
        hidden = super().embed(features, edge_index)
        require_finite(hidden, features, None, self.parameters())
        return hidden
