"""The attention matrix on all pairs, never formed."""

import torch
from torch import Tensor

from cagat.diffusion.attention_operator import AttentionOperator
from cagat.diffusion.chain import Chain
from cagat.diffusion.coefficients import is_zero, over_channels
from cagat.kernels import CSRGraph, sddmm_heads, spmm_heads


class FullSupport(AttentionOperator):
    r"""S on all pairs of nodes, as the products with it.

    Only products :math:`S V` with tall matrices are ever needed, and for them Eq. (15) is a recursion:

    .. math::
        S_0 V &= G V \\
        S_l V &= \alpha \bar{A} \left( S_{l-1} (\bar{A}^T V) \right) + B_l V, \qquad
        B_l = (1 - \alpha) G + \xi Q(H_l)

    So go down the chain :math:`V_i = \bar{A}^T V_{i-1}`, multiply by :math:`G` at its end, and come up again. A product
    after :math:`m` steps costs :math:`O(m (|E| H d + n H d^2))` time and :math:`O(m n H d)` memory, and equals the
    dense algorithm to rounding.

    Args:
        graph: The graph.
        G: GAT's attention at its entries, where S starts.
        alpha: The share of context, one number or one a head.
        xi: The weight of the affinity, one number or one a head.
        affinity: Whether :math:`Q(H) = H H^T` is taken on the ``"edges"`` or on all pairs (``"full"``).
        normalization: How the diffusion matrix is normalised.
    """

    def __init__(
        self,
        graph: CSRGraph,
        G: Tensor,
        alpha: float | Tensor,
        xi: float | Tensor = 0.0,
        affinity: str = "edges",
        normalization: str = "row",
    ) -> None:
        super().__init__(graph, G.size(1), G.dtype)
        self._G = G
        self._alpha = alpha
        self._xi = xi
        self._affinity = "none" if is_zero(xi) else affinity
        self._normalization = normalization
        # A round: its number of steps, and what its affinity needs, B on the edges or the features H themselves.
        self._rounds: list[tuple[int, Tensor]] = []

    @property
    def num_steps(self) -> int:
        """How many steps of Eq. (15) a product goes through."""
        return sum(steps for steps, _ in self._rounds)

    def advance(self, H: Tensor, steps: int) -> None:
        """Take some steps of Eq. (15), in which the affinity is that of H."""
        if steps == 0:
            return
        if is_zero(self._alpha):
            # Without context a step forgets all that was before it.
            self._rounds.clear()
            steps = 1
        if self._affinity == "edges":
            B = (1 - self._alpha) * self._G + self._xi * sddmm_heads(self.graph.pattern, H, self.graph.gather_halo(H))
            self._rounds.append((steps, B))
        else:
            self._rounds.append((steps, H))

    def matmul(self, V: Tensor | Chain, *, transpose: bool = False) -> Tensor:
        """See :meth:`AttentionOperator.matmul`."""
        chain = V if isinstance(V, Chain) else Chain(self.graph, self._normalization, V, transpose=transpose)
        if self._has_forgotten_G():
            (Y,) = self._sources(chain.up_from(0), transpose)
            return Y
        Y, *sources = self._sources(chain.up_from(self.num_steps), transpose)
        # Of Abar S Abar^T the transpose has the same sides, but of Abar S Abar, a walk's, it has them transposed.
        turned = transpose and self._normalization == "walk"
        for source in sources:
            context = self.graph.propagate(self.graph.gather_halo(Y), self._normalization, transpose=turned)
            if isinstance(self._alpha, Tensor):
                Y = torch.addcmul(source, self._alpha[:, None], context)
            else:
                Y = torch.add(source, context, alpha=self._alpha)
        return Y

    def on_edges(self) -> Tensor:
        """See :meth:`AttentionOperator.on_edges`.

        In general this costs a product for every node. Without context it costs nothing.
        """
        pattern = self.graph.pattern
        if not self._rounds:
            return self._G
        if self._has_forgotten_G():
            _, last = self._rounds[-1]
            if self._affinity == "edges":
                return last
            return self._G if self._affinity == "none" else self._G + self._xi * sddmm_heads(pattern, last, last)
        return self.at(pattern.rows(), pattern.col.long())

    def _has_forgotten_G(self) -> bool:
        """Whether S is B of the last step alone, because there is no context (alpha = 0)."""
        return is_zero(self._alpha) and bool(self._rounds)

    def _sources(self, upwards: list[Tensor], transpose: bool) -> list[Tensor]:
        """What enters at each step of the way up: ``G V_m, B_1 V_(m-1), ..., B_m V_0``.

        Where G is forgotten, there is V_0 alone, and only ``B_m V_0`` is wanted.
        """
        upwards = [V.expand(-1, self.heads, -1) for V in upwards]
        if self._affinity == "edges":
            products = [] if self._has_forgotten_G() else self._wide(self._G, upwards[:1], transpose)
            for steps, B in self._rounds:
                first = len(products)
                products += self._wide(B, upwards[first : first + steps], transpose)
            return products
        products = self._wide(self._G, upwards, transpose)
        start = 0 if self._has_forgotten_G() else 1
        remaining = 1 - over_channels(self._alpha)
        sources = products[:start] + [remaining * product for product in products[start:]]
        if self._affinity == "full" and self._rounds:
            xi = over_channels(self._xi)
            features = [H for steps, H in self._rounds for _ in range(steps)]
            # H (H^T V), from the right: d x d numbers a head instead of n x n.
            blocks = [torch.einsum("nhc,nhd->hcd", H, upwards[i][: H.size(0)]) for i, H in enumerate(features, start)]
            summed = self.graph.all_reduce(torch.stack(blocks)).unbind()
            for i, (H, block) in enumerate(zip(features, summed, strict=True), start):
                sources[i] = sources[i] + xi * torch.einsum("nhc,hcd->nhd", H, block)
        return sources

    def _wide(self, values: Tensor, factors: list[Tensor], transpose: bool) -> list[Tensor]:
        """One product with all factors side by side, which reads the values and the pattern once."""
        wide = torch.cat(factors, dim=-1) if len(factors) > 1 else factors[0]
        product = spmm_heads(self.graph.pattern, values, wide, transpose=transpose)
        return list(torch.split(product, [factor.size(-1) for factor in factors], dim=-1))
