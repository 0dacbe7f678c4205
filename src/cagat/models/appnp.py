"""Predict, then propagate: APPNP, and SGC, which is its linear case."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph, spmm, spmm_heads
from cagat.kernels.row_layout import row_layout
from cagat.models.gcn import can_be_compiled, gcn_graph
from cagat.models.mlp import MLP, FeatureLinear, dense_features
from cagat.models.node_classifier import NodeClassifier, arguments
from cagat.nn import Features


class APPNP(MLP):
    r"""A perceptron, then :class:`PersonalizedPageRank` of its predictions.

    The paper is `"Predict then Propagate: Graph Neural Networks meet Personalized PageRank"
    <https://arxiv.org/abs/1810.05997>`_.

    .. math::
        Z^{(0)} = \mathrm{relu}(X W_0) W_1, \qquad Z^{(k)} = (1 - \alpha) \hat{A} Z^{(k-1)} + \alpha Z^{(0)}

    Args:
        K: Number of steps of the propagation. (default: ``10``)
        alpha: Probability to return to the start. (default: ``0.1``)
        dropout: Dropout on the input of each layer and on :math:`\hat{A}` in training. (default: ``0.5``)
    """

    takes_weights = True
    hyperparameters = arguments("alpha", "dropout", hidden="hidden_channels", steps="K")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        K: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:
        # Without biases, as in the authors' code.
        super().__init__(in_channels, hidden_channels, out_channels, dropout, bias=False)
        self.propagation = PersonalizedPageRank(K, alpha, dropout)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.propagation(super().forward(x, edge_index), edge_index, edge_attr)
        return logits

    def decaying(self) -> list[torch.nn.Parameter]:
        """Only the weights of the first layer, as in the authors' code."""
        return [self.lin1.weight]


class SGC(NodeClassifier):
    r"""The linear model of `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_, Eq. (8).

    .. math::
        \hat{A}^K X W + b

    It equals PyG's :class:`~torch_geometric.nn.SGConv`, but multiplies from the right: :math:`\hat{A}^K (X W)` has as
    many columns as there are classes, and lets :math:`X` stay sparse.

    Args:
        K: Number of steps of the propagation. (default: ``2``)
    """

    takes_sparse = True
    hyperparameters = arguments(steps="K")

    def __init__(self, in_channels: int, out_channels: int, K: int = 2) -> None:
        super().__init__()
        self.lin = FeatureLinear(in_channels, out_channels, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(out_channels))
        self.propagation = PersonalizedPageRank(K, alpha=0.0)

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes."""
        logits: Tensor = self.propagation(self.lin(x), edge_index, edge_attr) + self.bias
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The propagated features."""
        propagated: Tensor = self.propagation(dense_features(x), edge_index, edge_attr)
        return propagated


class PersonalizedPageRank(torch.nn.Module):
    r"""The propagation of `"Predict then Propagate" <https://arxiv.org/abs/1810.05997>`_, Eq. (4).

    .. math::
        Z^{(k)} = (1 - \alpha)\, \mathrm{dropout}(\hat{A}) Z^{(k-1)} + \alpha Z^{(0)}, \qquad k = 1, \dots, K

    It is PyG's :class:`~torch_geometric.nn.APPNP`, but for the dropout: every step drops entries of the whole
    :math:`\hat{A}`, as in the authors' code. PyG's layer (2.8) drops from what the step before left over, so that
    with a dropout of one half hardly an edge in a thousand lives to the tenth step, with a thousandfold weight.
    """

    def __init__(self, K: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.K, self.alpha, self.dropout = K, alpha, dropout
        self.scale = 1 - alpha

    def forward(self, z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
        """The propagated predictions."""
        graph = gcn_graph(z, edge_index, edge_weight)
        weights = graph.transition("sym", z.dtype)
        dropped = None
        if self.training and self.dropout > 0:
            dropped = [F.dropout(weights[0], self.dropout) for _ in range(self.K)]
        if self.K > 0 and can_be_compiled(graph, z) and row_layout(1, z.size(1), z.dtype).is_possible:
            steps = (self.K, self.scale, self.alpha, graph.pattern, weights, dropped)
            y: Tensor = _Program.apply(z, steps, False)  # type: ignore[no-untyped-call]
            return y
        start = z
        for step in range(self.K):
            if dropped is None:
                product = spmm(graph.pattern, weights, z)
            else:
                product = spmm_heads(graph.pattern, dropped[step][:, None], z[:, None, :]).squeeze(1)
            z = self.scale * product + self.alpha * start
        return z

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        return f"K={self.K}, alpha={self.alpha:g}, dropout={self.dropout:g}"


class _Program(torch.autograd.Function):
    """All steps as compiled passes: on Cora, torch's dispatcher takes as long for a step as its product.

    The propagation is linear. Its gradient therefore is its transpose, the gradient of which is the propagation again.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, steps: tuple[Any, ...], transpose: bool) -> Tensor:
        # Imported here, so that importing cagat does not wait for the compiler.
        from cagat.kernels.numba_products import aggregate
        from cagat.kernels.row_passes import RowPasses

        ctx.steps, ctx.transpose = steps, transpose
        K, scale, alpha, pattern, weights, dropped = steps
        layout = row_layout(1, z.size(1), z.dtype)
        passes = RowPasses(pattern, weights, layout)
        start = layout.rows(z.detach()[:, None, :]).contiguous()
        current, following, other = start, torch.empty_like(start), torch.empty_like(start)
        # Transposed, every step hands alpha times its gradient to the start, and the first one the rest, too.
        total = alpha * start
        for step in reversed(range(K)) if transpose else range(K):
            add = {"add": start, "scale_add": alpha} if not transpose else {"add": total} if step == 0 else {}
            values = None if dropped is None else dropped[step]
            aggregate(passes, current, following, values=values, scale=scale, transpose=transpose, **add)
            if transpose and step > 0:
                total.add_(following, alpha=alpha)
            current, following, other = following, other, following
        return layout.features(current)[:, 0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Program.apply(grad, ctx.steps, not ctx.transpose), None, None  # type: ignore[no-untyped-call]
