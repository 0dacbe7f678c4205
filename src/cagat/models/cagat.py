"""The network of the paper."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.diffusion import is_zero
from cagat.kernels import CSRGraph
from cagat.models.mlp import dense_features
from cagat.models.node_classifier import NodeClassifier, arguments
from cagat.nn import Adjacency, AttentionRows, CaGATConv, Features, feature_dropout
from cagat.nn.validation import require_choice, require_sizes, require_within


class CaGAT(NodeClassifier):
    r"""A network of :class:`~cagat.CaGATConv` layers that labels nodes.

    With the defaults it is the network of `"Context-Aware Graph Attention Networks"
    <https://arxiv.org/abs/1910.01736>`_, section 4.2: two layers, eight heads of eight units, ELU, and one averaged
    output head, with GAT's dropout on every layer's input and on the attention :math:`G`.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of each head of a hidden layer.
        num_layers: Number of layers.
        out_channels: Number of classes.
        heads: Number of heads of a hidden layer. (default: ``8``)
        output_heads: Number of heads, which are averaged, of the last layer. (default: ``1``)
        dropout: Dropout on the input of each layer in training. (default: ``0.6``)
        attention_dropout: Dropout on the attention in training. (default: ``0.6``)
        propagation: An extension of ours: whether ``"all"`` layers aggregate over the graph, or only the ``"last"``
            one, with ``lam=0`` in all before it: first predict, then propagate, as APPNP does. (default: ``"all"``)
        attention_weight_decay: The weight decay of the vectors that attention is made with, if it has one of its own.
            (default: ``None``)
        **kwargs: Arguments of :class:`~cagat.CaGATConv`: ``K``, ``T``, ``alpha``, ``lam``, ``xi``, ``support``, and so
            on.
    """

    convs: Sequence[CaGATConv]
    takes_sparse = True
    hyperparameters = arguments(
        "heads", "dropout", "attention_dropout", "attention_weight_decay", "propagation", "alpha", "lam", "xi",
        "support", "affinity", "feedback", "normalization", "learn_coefficients",
        hidden="hidden_channels", layers="num_layers", rounds="K", steps="T",
    )  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        heads: int = 8,
        output_heads: int = 1,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
        propagation: Literal["all", "last"] = "all",
        attention_weight_decay: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        require_sizes(num_layers=num_layers, hidden_channels=hidden_channels)
        require_within("dropout", dropout, 0, 1)
        require_choice("propagation", propagation, ("all", "last"))
        self.dropout, self.attention_weight_decay = dropout, attention_weight_decay
        sizes = [in_channels] + [hidden_channels * heads] * (num_layers - 1)
        own = kwargs if propagation == "all" else kwargs | {"lam": 0.0}
        hidden = [CaGATConv(size, hidden_channels, heads, dropout=attention_dropout, **own) for size in sizes[:-1]]
        output = CaGATConv(sizes[-1], out_channels, output_heads, concat=False, dropout=attention_dropout, **kwargs)
        self.convs = torch.nn.ModuleList([*hidden, output])  # type: ignore[assignment]

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for conv in self.convs:
            conv.reset_parameters()

    def forward(self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.convs[-1](self._inputs(x, edge_index, edge_attr)[-1], edge_index, edge_attr)
        return logits

    def embed(self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the last hidden layer; of a network of one layer, its input."""
        return dense_features(self._inputs(x, edge_index, edge_attr)[-1])

    def reach(self) -> int | None:
        """How many hops from a node its logits look; ``None`` if the affinity is taken on all pairs of nodes."""
        hops = [(conv, reach_of(conv)) for conv in self.convs]
        known = [(conv, hop) for conv, hop in hops if hop is not None]
        if len(known) < len(hops):
            return None
        total = sum(hop for _, hop in known)
        # The first layer that aggregates divides by the degrees of the farthest nodes that it reaches, as the transpose
        # of Abar does, and degrees depend on one hop more. On the edges, for a walk, and where features that are fed
        # back look one hop further, they are degrees of nearer nodes, unless G is divided by degrees, too.
        first = next((conv for conv, hop in known if hop > 0), None)
        if first is not None and first.normalization == "gcn":
            return total + 1
        if first is None or first.support == "edges" or first.feedback or first.normalization == "walk":
            return total
        return total + (first.K * first.T > 0 and not is_zero(first.coefficients().alpha))

    def attention(
        self,
        x: Features,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        nodes: int | list[int] | Tensor,
        rounds: int | None = None,
    ) -> list[AttentionRows]:
        """The attention of chosen nodes in every layer, without dropout; see :meth:`cagat.CaGATConv.attention`."""
        inputs = self.layer_inputs(x, edge_index, edge_attr)
        return [
            conv.attention(features, edge_index, edge_attr, nodes=nodes, rounds=rounds)
            for conv, features in zip(self.convs, inputs, strict=True)
        ]

    @torch.no_grad()
    def layer_inputs(self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None = None) -> list[Features]:
        """The features that enter each layer, without dropout and gradients."""
        modes = {module: module.training for module in self.modules()}
        self.eval()
        try:
            return self._inputs(x, edge_index, edge_attr)
        finally:
            for module, training in modes.items():
                module.training = training

    def _inputs(self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None) -> list[Features]:
        """The features that enter each layer."""
        global_rows = edge_index.global_nodes if isinstance(edge_index, CSRGraph) else None
        inputs = [feature_dropout(x, self.dropout, self.training, global_rows)]
        for conv in self.convs[:-1]:
            hidden = F.elu(conv(inputs[-1], edge_index, edge_attr))
            inputs.append(feature_dropout(hidden, self.dropout, self.training, global_rows))
        return inputs


def reach_of(conv: CaGATConv) -> int | None:
    r"""How many hops from a node a layer's output looks; ``None`` if the affinity is taken on all pairs of nodes.

    After :math:`m` steps, :math:`S` holds :math:`\bar{A}^m G (\bar{A}^T)^m`, whose rows reach :math:`2 m + 1` hops. On
    the edges, a step takes in the entries of neighbouring edges, and rows reach :math:`m + 1` hops. Features that enter
    the attention by their affinity, or are fed back, have looked around before.
    """
    alpha, lam, xi = conv.coefficients()
    if is_zero(lam):
        return 0
    T = conv.T if not is_zero(alpha) else 0  # Without context, S looks no further with more steps.
    has_affinity = not is_zero(xi) and conv.T > 0
    if has_affinity and conv.affinity == "full" and conv.K > 0:
        return None
    reach = [1]  # H = lam G Z + (1 - lam) Z.
    for k in range(1, conv.K + 1):
        own = (k * T if conv.support == "edges" else 2 * k * T) + 1
        if conv.feedback:
            own += reach[k - 1]
        if has_affinity and T > 0:
            # The matrix of round r stands at most (k - r + 1) T hops away, at the ends of its edges.
            own = max(own, *((k - r + 1) * T + reach[r - 1] for r in range(1, k + 1)))
        elif has_affinity:
            own = max(own, 1 + reach[k - 1])
        reach.append(own)
    return reach[conv.K]
