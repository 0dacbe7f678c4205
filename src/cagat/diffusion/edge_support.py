"""The attention matrix on the edges only."""

from torch import Tensor

from cagat.diffusion.attention_operator import AttentionOperator
from cagat.diffusion.chain import Chain
from cagat.diffusion.coefficients import is_zero
from cagat.kernels import CSRGraph, edge_diffusion, sddmm_heads, spmm_heads


class EdgeSupport(AttentionOperator):
    r"""S kept on the edges: Eq. (15), masked to the edges after each step.

    A step costs :math:`O(H \sum_i \deg_i^2)` time, and beyond the values themselves a scratch row of n x H numbers for
    each thread.

    Args:
        graph: The graph.
        G: GAT's attention at its entries, where S starts.
        alpha: The share of context, one number or one a head.
        xi: The weight of the affinity, one number or one a head.
        normalization: How the diffusion matrix is normalised.
    """

    def __init__(
        self,
        graph: CSRGraph,
        G: Tensor,
        alpha: float | Tensor = 0.0,
        xi: float | Tensor = 0.0,
        normalization: str = "row",
    ) -> None:
        super().__init__(graph, G.size(1), G.dtype)
        self._G = G
        self._alpha = alpha
        self._xi = xi
        self._normalization = normalization
        self.values = G

    def advance(self, H: Tensor, steps: int) -> None:
        """Take some steps of Eq. (15), in which the affinity is that of H."""
        pattern = self.graph.pattern
        source = (1 - self._alpha) * self._G
        if not is_zero(self._xi):
            source = source + self._xi * sddmm_heads(pattern, H, H)
        for _ in range(steps):
            if is_zero(self._alpha):
                self.values = source
                continue
            weights = self.graph.transition(self._normalization, self.dtype)
            self.values = self._alpha * edge_diffusion(pattern, weights, self.values) + source

    @property
    def num_steps(self) -> int:
        """None: a product reads the values as they are."""
        return 0

    def matmul(self, V: Tensor | Chain, *, transpose: bool = False) -> Tensor:
        """See :meth:`AttentionOperator.matmul`."""
        if isinstance(V, Chain):
            (V,) = V.up_from(0)
        V = V.expand(-1, self.heads, -1)
        return spmm_heads(self.graph.pattern, self.values, V, transpose=transpose)

    def on_edges(self) -> Tensor:
        """See :meth:`AttentionOperator.on_edges`."""
        return self.values
