"""Approximate personalized propagation of neural predictions."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from cagat.models.feature_linear import FeatureLinear
from cagat.models.node_classifier import NodeClassifier
from cagat.models.parameter_groups import decay_only
from cagat.models.personalized_pagerank import PersonalizedPageRank
from cagat.nn import SparseFeatures
from cagat.nn.validation import require_sizes


class APPNP(NodeClassifier):
    r"""A perceptron, then :class:`PersonalizedPageRank` of its predictions.

    The paper is `"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_.

    .. math::
        Z^{(0)} = \mathrm{relu}(X W_0) W_1, \qquad Z^{(k)} = (1 - \alpha) \hat{A} Z^{(k-1)} + \alpha Z^{(0)}

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of the hidden layer.
        out_channels: Number of classes.
        K: Number of steps of the propagation. (default: ``10``)
        alpha: Probability to return to the start. (default: ``0.1``)
        dropout: Dropout on the input of each layer and on :math:`\hat{A}` in training. (default: ``0.5``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; weights :math:`(|E|)`
          *(optional)*
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_sparse = True
    hyperparameters: ClassVar[Mapping[str, str]] = {
        "hidden": "hidden_channels",
        "steps": "K",
        "alpha": "alpha",
        "dropout": "dropout",
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        K: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:
        require_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        super().__init__()
        # Without biases, as in the authors' code.
        self.lin1 = FeatureLinear(in_channels, hidden_channels, dropout, bias=False)
        self.lin2 = FeatureLinear(hidden_channels, out_channels, dropout, bias=False)
        self.propagation = PersonalizedPageRank(K, alpha, dropout)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.propagation(self.lin2(self.embed(x, edge_index)), edge_index, edge_attr)
        return logits

    def embed(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the perceptron's hidden layer, which knows nothing of the edges yet."""
        return F.relu(self.lin1(x))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Only the weights of the first layer decay, as in the authors' code."""
        return decay_only(self, [self.lin1.weight], weight_decay)
