"""Graph convolutional networks, trained on sampled neighbours with little variance."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.memory import require_memory
from cagat.models.gcn import GCN
from cagat.models.node_classifier import Labelled
from cagat.models.sampled_neighbours import SampledNeighbours, all_neighbours, sample_neighbours
from cagat.nn import SparseFeatures
from cagat.nn.sparse_features import as_features


class CVDPP(GCN):
    r"""A :class:`GCN` trained on sampled neighbours, with control variates for neighbours and for dropout.

    The paper is `"Stochastic Training of Graph Convolutional Networks with Variance Reduction"
    <https://arxiv.org/abs/1710.10568>`_.

    With :math:`P = \hat{A}`, preprocessing makes :math:`U = P X` once, so that the hidden layer needs no neighbours.
    Beside each node's :math:`h_v = \mathrm{relu}(\mathrm{dropout}(u_v) W_0)` stands its dropout-free
    :math:`\mu_v = \mathrm{relu}(u_v W_0)`, and the history :math:`\bar\mu_v` is the last :math:`\mu_v` that was made.
    Of the neighbours :math:`n(u)` of a node, itself among them, :math:`D` are drawn, and with :math:`R = |n(u)| / D`

    .. math::
        a_u = \sqrt{R} \sum_{drawn} P_{uv} (h_v - \mu_v) + R \sum_{drawn} P_{uv} (\mu_v - \bar\mu_v) +
        \sum_{all} P_{uv} \bar\mu_v

    stands in for :math:`\sum_{all} P_{uv} h_v`; the logits are :math:`\mathrm{dropout}(a_u) W_1`. As far as
    :math:`\mu_v` is the mean of :math:`h_v`, the mean over draws is right whatever the history. The variance vanishes
    as the history catches up, but for dropout's, which the factor :math:`\sqrt{R}` keeps as large as it is with all
    neighbours. The gradient passes through :math:`h` and :math:`\mu`, not through the history: without the share of
    :math:`\mu`, a node's gradient would be :math:`\sqrt{R}` times too small on average.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of the hidden layer.
        out_channels: Number of classes.
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)
        neighbours: How many neighbours are drawn: :math:`D`. (default: ``2``)
        batch_size: How many training nodes make a step. (default: ``1000``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; weights :math:`(|E|)`
          *(optional)*
        - **output:** logits :math:`(n, F_{out})`
    """

    hyperparameters: ClassVar[Mapping[str, str]] = {
        **GCN.hyperparameters,
        "neighbours": "neighbours",
        "batch_size": "batch_size",
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        neighbours: int = 2,
        batch_size: int = 1000,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, dropout)
        self.neighbours = neighbours
        self.batch_size = batch_size
        self._preprocessed: _Preprocessed | None = None
        self._history: Tensor | None = None

    def losses(self, inputs: tuple[Any, ...], train: Labelled) -> Iterator[Tensor]:
        """One loss for each mini-batch of training nodes, in random order."""
        data = self._preprocess(*inputs)
        history = self._history_of(data.U)
        order = torch.randperm(train.nodes.numel(), device=train.nodes.device)
        for batch in torch.split(order, self.batch_size):
            nodes = train.nodes[batch]
            drawn = sample_neighbours(data.graph.pattern, nodes, self.neighbours)
            seen, place = torch.unique(data.graph.pattern.col[drawn.entry].long(), return_inverse=True)
            h, mu = self._hidden(data.U[seen], dropout=True), self._hidden(data.U[seen], dropout=False)
            aggregated = self._aggregate(data, nodes, drawn, h[place], mu[place], history)
            yield F.cross_entropy(self.conv2.lin(aggregated) + self.conv2.bias, train.classes[batch])
            history[seen] = mu.detach()  # Only now, after the trainer's step, as in the authors' code.

    def training_state(self) -> dict[str, Tensor]:
        """The history."""
        return {} if self._history is None else {"history": self._history.clone()}

    def load_training_state(self, state: dict[str, Tensor]) -> None:
        """Go on with a history."""
        self._history = state["history"].clone() if "history" in state else None

    def _hidden(self, u: Tensor, dropout: bool) -> Tensor:
        """The hidden layer of some nodes, from their rows of U."""
        lin = self.conv1.lin
        product = lin(u) if dropout else F.linear(u, lin.weight)
        return F.relu(product + self.conv1.bias)

    def _aggregate(
        self,
        data: "_Preprocessed",
        nodes: Tensor,
        drawn: SampledNeighbours,
        h: Tensor,
        mu: Tensor,
        history: Tensor,
    ) -> Tensor:
        """The estimate of the hidden layer's aggregate at some nodes, from h and mu at the drawn entries."""
        graph, weight = data.graph, data.graph.transition("sym", mu.dtype)[0]
        everything = all_neighbours(graph.pattern, nodes)
        R = drawn.ratio.to(mu.dtype)[drawn.row, None]
        change = mu - history[graph.pattern.col[drawn.entry].long()]
        estimate = weight[drawn.entry, None] * (R.sqrt() * (h - mu) + R * change)
        known = weight[everything.entry, None] * history[graph.pattern.col[everything.entry].long()]
        total = mu.new_zeros(nodes.numel(), mu.size(1))
        return total.index_add(0, everything.row, known).index_add(0, drawn.row, estimate)

    def _preprocess(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None
    ) -> "_Preprocessed":
        """U = P X, made in the first epoch."""
        known = self._preprocessed
        if known is None or known.x is not x or known.edge_index is not edge_index or known.edge_attr is not edge_attr:
            known = self._preprocessed = _Preprocessed.made_from(x, edge_index, edge_attr)
        return known

    def _history_of(self, U: Tensor) -> Tensor:
        shape = (U.size(0), self.conv1.out_channels)
        if self._history is None or self._history.shape != shape:
            self._history = U.new_zeros(shape)
        return self._history


class _Preprocessed(NamedTuple):
    """What is made once from the inputs, and the inputs, to know them again."""

    x: Tensor | SparseFeatures
    edge_index: Tensor
    edge_attr: Tensor | None
    graph: CSRGraph
    U: Tensor

    @classmethod
    def made_from(cls, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None) -> "_Preprocessed":
        features = as_features(x)
        rows, columns = features.shape
        require_memory(
            12 * rows * columns,
            f"CVD+PP's product of the adjacency matrix with {rows} x {columns} features, which is dense,",
            "Train gcn instead, which is the same network and keeps sparse features sparse.",
        )
        dense = features.to_dense() if isinstance(features, SparseFeatures) else features
        graph = prepare_graph(edge_index, rows, edge_attr, normalization="sym", dtype=dense.dtype)
        with torch.no_grad():
            return cls(
                x, edge_index, edge_attr, graph, spmm(graph.pattern, graph.transition("sym", dense.dtype), dense)
            )
