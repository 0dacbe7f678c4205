"""Propagation by personalized PageRank."""

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.kernels import CSRGraph, spmm, spmm_heads
from cagat.models.graph_convolution import gcn_graph


class PersonalizedPageRank(torch.nn.Module):
    r"""The propagation of `"Predict then Propagate" <https://arxiv.org/abs/1810.05997>`_, Eq. (4).

    .. math::
        Z^{(k)} = (1 - \alpha)\, \mathrm{dropout}(\hat{A}) Z^{(k-1)} + \alpha Z^{(0)}, \qquad k = 1, \dots, K

    It is PyG's :class:`~torch_geometric.nn.APPNP`, but for the dropout: every step drops entries of the whole
    :math:`\hat{A}`, as in the authors' code. PyG's layer (2.8) drops from what the step before left over, so that
    with a dropout of one half hardly an edge in a thousand lives to the tenth step, with a thousandfold weight.

    Args:
        K: Number of steps.
        alpha: Probability to return to the start.
        dropout: Dropout on the entries of :math:`\hat{A}` in training. (default: ``0``)

    Shapes:
        - **input:** predictions :math:`(n, C)`; edges :math:`(2, |E|)`; weights :math:`(|E|)` *(optional)*
        - **output:** :math:`(n, C)`
    """

    def __init__(self, K: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        self.K = K
        self.alpha = alpha
        self.dropout = dropout

    def forward(self, z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
        """The propagated predictions."""
        graph = gcn_graph(z, edge_index, edge_weight)
        start = z
        for _ in range(self.K):
            z = (1 - self.alpha) * self._step(graph, z) + self.alpha * start
        return z

    def _step(self, graph: CSRGraph, z: Tensor) -> Tensor:
        weights = graph.transition("sym", z.dtype)
        if not (self.training and self.dropout > 0):
            return spmm(graph.pattern, weights, z)
        dropped = F.dropout(weights[0], self.dropout)
        return spmm_heads(graph.pattern, dropped[:, None], z[:, None, :]).squeeze(1)

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        return f"K={self.K}, alpha={self.alpha:g}, dropout={self.dropout:g}"
