"""The network of the paper."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph
from cagat.models.node_classifier import NodeClassifier
from cagat.models.reach import needs_degrees_at_its_end, reach_of
from cagat.nn import AttentionRows, CaGATConv, SparseFeatures, feature_dropout
from cagat.nn.sparse_features import as_features
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
        **kwargs: Arguments of :class:`~cagat.CaGATConv`: ``K``, ``T``, ``alpha``, ``lam``, ``xi``, ``support``, and so
            on.

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; edge features
          :math:`(|E|, D)` or weights :math:`(|E|)` *(optional)*
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_sparse = True
    hyperparameters: ClassVar[Mapping[str, str]] = {
        "hidden": "hidden_channels",
        "layers": "num_layers",
        "heads": "heads",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "rounds": "K",
        "steps": "T",
        "propagation": "propagation",
        **{
            name: name
            for name in ("alpha", "lam", "xi", "support", "affinity", "feedback", "normalization", "learn_coefficients")
        },
    }

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
        **kwargs: Any,
    ) -> None:
        super().__init__()
        require_sizes(num_layers=num_layers, hidden_channels=hidden_channels)
        require_within("dropout", dropout, 0, 1)
        require_choice("propagation", propagation, ("all", "last"))
        self.dropout = dropout
        sizes = [in_channels] + [hidden_channels * heads] * (num_layers - 1)
        own = kwargs if propagation == "all" else kwargs | {"lam": 0.0}
        hidden = [CaGATConv(size, hidden_channels, heads, dropout=attention_dropout, **own) for size in sizes[:-1]]
        output = CaGATConv(sizes[-1], out_channels, output_heads, concat=False, dropout=attention_dropout, **kwargs)
        self.convs = torch.nn.ModuleList([*hidden, output])

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for conv in self.convs:
            assert isinstance(conv, CaGATConv)
            conv.reset_parameters()

    def forward(
        self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph, edge_attr: Tensor | None = None
    ) -> Tensor:
        """The logits of all nodes."""
        hidden = self._hidden(x, edge_index, edge_attr)
        logits: Tensor = self.convs[-1](hidden, edge_index, edge_attr)
        return logits

    def embed(
        self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph, edge_attr: Tensor | None = None
    ) -> Tensor:
        """The output of the last hidden layer; of a network of one layer, its input."""
        hidden = self._hidden(x, edge_index, edge_attr)
        return hidden.to_dense() if isinstance(hidden, SparseFeatures) else hidden

    def reach(self) -> int | None:
        """How many hops from a node its logits look; ``None`` if the affinity is taken on all pairs of nodes."""
        hops = [reach_of(conv) for conv in self.convs if isinstance(conv, CaGATConv)]
        if None in hops:
            return None
        # At the far end of the first layer that looks around there are degrees, for which one hop more must be there.
        looking = [conv for conv in self._layers() if reach_of(conv) != 0]
        return sum(hop for hop in hops if hop is not None) + int(any(map(needs_degrees_at_its_end, looking[:1])))

    def attention(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor | CSRGraph,
        edge_attr: Tensor | None = None,
        *,
        nodes: int | list[int] | Tensor,
        rounds: int | None = None,
    ) -> list[AttentionRows]:
        """The attention of chosen nodes in every layer, without dropout; see :meth:`cagat.CaGATConv.attention`."""
        inputs = self.layer_inputs(x, edge_index, edge_attr)
        return [
            conv.attention(features, edge_index, edge_attr, nodes=nodes, rounds=rounds)
            for conv, features in zip(self._layers(), inputs, strict=True)
        ]

    @torch.no_grad()
    def layer_inputs(
        self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph, edge_attr: Tensor | None = None
    ) -> list[Tensor | SparseFeatures]:
        """The features that enter each layer, without dropout and gradients."""
        modes = {module: module.training for module in self.modules()}
        self.eval()
        try:
            inputs = [as_features(x)]
            for conv in list(self.convs)[:-1]:
                inputs.append(F.elu(conv(inputs[-1], edge_index, edge_attr)))
            return inputs
        finally:
            for module, training in modes.items():
                module.training = training

    def _layers(self) -> list[CaGATConv]:
        return [conv for conv in self.convs if isinstance(conv, CaGATConv)]

    def _hidden(
        self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph, edge_attr: Tensor | None
    ) -> Tensor | SparseFeatures:
        """The input of the last layer."""
        global_rows = edge_index.global_nodes if isinstance(edge_index, CSRGraph) else None
        x = feature_dropout(x, self.dropout, self.training, global_rows)
        for conv in list(self.convs)[:-1]:
            x = feature_dropout(F.elu(conv(x, edge_index, edge_attr)), self.dropout, self.training, global_rows)
        return x
