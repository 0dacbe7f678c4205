"""Graph convolutional networks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from cagat.models.graph_convolution import GraphConvolution
from cagat.models.node_classifier import NodeClassifier
from cagat.models.parameter_groups import decay_only
from cagat.nn import SparseFeatures
from cagat.nn.validation import require_sizes


class GCN(NodeClassifier):
    r"""Two graph convolutions.

    The paper is `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_.

    .. math::
        \hat{A}\, \mathrm{relu}(\hat{A} X W_0) W_1

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of the hidden layer.
        out_channels: Number of classes.
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; weights :math:`(|E|)`
          *(optional)*
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_sparse = True
    hyperparameters: ClassVar[Mapping[str, str]] = {"hidden": "hidden_channels", "dropout": "dropout"}

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.5) -> None:
        require_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        super().__init__()
        self.conv1 = GraphConvolution(in_channels, hidden_channels, dropout)
        self.conv2 = GraphConvolution(hidden_channels, out_channels, dropout)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.conv2(self.embed(x, edge_index, edge_attr), edge_index, edge_attr)
        return logits

    def embed(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer."""
        return F.relu(self.conv1(x, edge_index, edge_attr))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Only the weights of the first layer decay, as in the authors' code."""
        return decay_only(self, [self.conv1.lin.weight], weight_decay)
