"""Graph convolutional networks, trained on sampled neighbours with little variance."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph, CSRPattern, spmm
from cagat.memory import require_memory
from cagat.models.gcn import GCN, gcn_graph
from cagat.models.mlp import dense_features
from cagat.models.node_classifier import Labelled, arguments
from cagat.nn import Features, as_features


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
        dropout: Dropout on the input of each layer in training. (default: ``0.5``)
        neighbours: How many neighbours are drawn: :math:`D`. (default: ``2``)
        batch_size: How many training nodes make a step. (default: ``1000``)
    """

    hyperparameters = arguments("dropout", "neighbours", "batch_size", hidden="hidden_channels")

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
        self.neighbours, self.batch_size = neighbours, batch_size
        self._inputs: tuple[Any, ...] = ()
        self._product: tuple[CSRGraph, Tensor]
        self._history: Tensor | None = None

    def losses(self, inputs: tuple[Any, ...], train: Labelled) -> Iterator[Tensor]:
        """One loss for each mini-batch of training nodes, in random order."""
        if [id(one) for one in self._inputs] != [id(one) for one in inputs]:
            self._inputs, self._product = inputs, _product(*inputs)
        graph, U = self._product
        shape = (U.size(0), self.conv1.out_channels)
        if self._history is None or self._history.shape != shape:
            self._history = U.new_zeros(shape)
        history = self._history
        order = torch.randperm(train.nodes.numel(), device=train.nodes.device)
        for batch in torch.split(order, self.batch_size):
            nodes = train.nodes[batch]
            drawn = sample_neighbours(graph.pattern, nodes, self.neighbours)
            seen, place = torch.unique(graph.pattern.col[drawn.entry].long(), return_inverse=True)
            h = F.relu(self.conv1.lin(U[seen]) + self.conv1.bias)
            mu = F.relu(F.linear(U[seen], self.conv1.lin.weight) + self.conv1.bias)
            aggregated = self._aggregate(graph, nodes, drawn, h[place], mu[place], history)
            logits = self.conv2.lin(aggregated) + self.conv2.bias
            yield F.cross_entropy(logits, train.classes[batch], train.class_weight)
            history[seen] = mu.detach()  # Only now, after the trainer's step, as in the authors' code.

    def training_state(self) -> dict[str, Tensor]:
        """The history."""
        return {} if self._history is None else {"history": self._history.clone()}

    def load_training_state(self, state: dict[str, Tensor]) -> None:
        """Go on with a history."""
        self._history = state["history"].clone() if "history" in state else None

    def _aggregate(
        self, graph: CSRGraph, nodes: Tensor, drawn: "SampledNeighbours", h: Tensor, mu: Tensor, history: Tensor
    ) -> Tensor:
        """The estimate of the hidden layer's aggregate at some nodes, from h and mu at the drawn entries."""
        weight, col = graph.transition("sym", mu.dtype)[0], graph.pattern.col
        row, entry = graph.pattern.entries_of(nodes)
        R = drawn.ratio.to(mu.dtype)[drawn.row, None]
        change = mu - history[col[drawn.entry].long()]
        estimate = weight[drawn.entry, None] * (R.sqrt() * (h - mu) + R * change)
        known = weight[entry, None] * history[col[entry].long()]
        total = mu.new_zeros(nodes.numel(), mu.size(1))
        return total.index_add(0, row, known).index_add(0, drawn.row, estimate)


@torch.no_grad()
def _product(x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> tuple[CSRGraph, Tensor]:
    """The graph and U = P X."""
    rows, columns = as_features(x).shape
    require_memory(
        12 * rows * columns,
        f"CVD+PP's product of the adjacency matrix with {rows} x {columns} features, which is dense,",
        "Train gcn instead, which is the same network and keeps sparse features sparse.",
    )
    dense = dense_features(x)
    graph = gcn_graph(dense, edge_index, edge_attr)
    return graph, spmm(graph.pattern, graph.transition("sym", dense.dtype), dense)


class SampledNeighbours(NamedTuple):
    """Entries that were drawn from some rows: which of these each is in, its number, and R of each of the rows."""

    row: Tensor
    entry: Tensor
    ratio: Tensor


def sample_neighbours(pattern: CSRPattern, nodes: Tensor, count: int) -> SampledNeighbours:
    """Draw ``count`` entries of each row uniformly without replacement, or all of a row that has no more.

    All rows are drawn at once: their entries are put in a random order within the row, and the first ones stay.
    """
    row, entry = pattern.entries_of(nodes)
    size = torch.bincount(row, minlength=nodes.numel())
    # In float64 the order of 2**52 / n random numbers is kept apart within each of n rows.
    order = (row + torch.rand(row.numel(), dtype=torch.float64, device=nodes.device)).argsort()
    place = torch.arange(order.numel(), device=nodes.device) - (size.cumsum(0) - size)[row]
    kept = place < count
    return SampledNeighbours(row[kept], entry[order][kept], size / size.clamp(max=count))
