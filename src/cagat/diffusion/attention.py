"""The attention matrix S as an operator: on all pairs without ever forming it, or on the edges only."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cagat.kernels import CSRGraph, edge_diffusion, sddmm_heads, spmm_heads
from cagat.memory import require_memory

# One-hot columns are multiplied in blocks that take about this many bytes.
_BLOCK_BYTES = 2**27
# Columns from which on a product of its own costs less than copying them beside others.
_WIDE = 32


def is_zero(coefficient: float | Tensor) -> bool:
    """Whether a term can be left out: it is zero, and cannot be learnt to be anything else."""
    return not isinstance(coefficient, Tensor) and coefficient == 0


def over_channels(coefficient: float | Tensor) -> float | Tensor:
    """The coefficient as a factor of ``(nodes, heads, channels)``."""
    return coefficient[:, None] if isinstance(coefficient, Tensor) else coefficient


class Chain:
    r"""The features :math:`V_0 = V` and :math:`V_i = \bar{A}^T V_{i-1}`, each made when it is first asked for.

    All rounds that multiply the same features share one chain. Its links are with halo, as products ask for them. With
    ``normalization="walk"``, where :math:`\bar{A}` stands on both sides of S, it is :math:`V_i = \bar{A} V_{i-1}`.

    Args:
        graph: The graph.
        normalization: How :math:`\bar{A}` is normalised.
        V: The features, of shape ``(n, heads or 1, C)``.
        transpose: Whether they are to be multiplied by the transpose of S, whose chain is that of the other side.
    """

    def __init__(self, graph: CSRGraph, normalization: str, V: Tensor, *, transpose: bool = False) -> None:
        self._graph = graph
        self._normalization = normalization
        self._is_transposed = normalization != "walk" or transpose
        self._links = [graph.gather_halo(V)]

    def up_from(self, step: int) -> list[Tensor]:
        """The features ``V_step, ..., V_1, V_0``."""
        while len(self._links) <= step:
            link = self._graph.propagate(self._links[-1], self._normalization, transpose=self._is_transposed)
            self._links.append(self._graph.gather_halo(link))
        return self._links[step::-1]


class AttentionOperator(ABC):
    """An attention matrix of each head that is known by its products.

    The products are differentiable. Single values are read off products with one-hot columns: the rows of S are the
    columns of its transpose.
    """

    def __init__(self, graph: CSRGraph, heads: int, dtype: torch.dtype) -> None:
        self.graph = graph
        self.heads = heads
        self.dtype = dtype

    @property
    @abstractmethod
    def num_steps(self) -> int:
        """How many sets of features a product holds at once, beside the one that it is given."""

    @abstractmethod
    def matmul(self, V: Tensor | Chain, *, transpose: bool = False) -> Tensor:
        """The product ``S V``, or ``S^T V``.

        Args:
            V: Features for each head, or the same for all heads if its second size is 1; a chain of them, if they are
                multiplied again and again.
            transpose: Whether to multiply by the transpose.

        Shapes:
            - **V:** ``(n, heads or 1, C)``
            - **output:** ``(n, heads, C)``
        """

    @abstractmethod
    def on_edges(self) -> Tensor:
        """The values at the entries of the graph's pattern, shape ``(entries, heads)``."""

    def rows(self, nodes: Tensor) -> Tensor:
        """The rows of chosen nodes, all n columns of them, shape ``(len(nodes), heads, n)``, without gradients."""
        shape = (nodes.numel(), self.heads, self.graph.num_nodes)
        self.require_rows(nodes.numel())
        rows = torch.empty(shape, dtype=self.dtype, device=self.graph.device)
        start = 0
        with torch.no_grad():
            for block in torch.split(nodes, self._block_size()):
                stop = start + block.numel()
                rows[start:stop] = self._one_hot_product(block, transpose=True).permute(2, 1, 0)
                start = stop
        return rows

    def columns(self, nodes: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The columns of chosen nodes, without gradients: block by block, its nodes and ``(n, heads, len(block))``."""
        for block in torch.split(nodes, self._block_size()):
            with torch.no_grad():
                columns = self._one_hot_product(block, transpose=False)
            yield block, columns

    def require_rows(self, count: int, matrices: int = 1) -> None:
        """Raise unless there is memory for the rows of so many nodes, of one matrix or of several of them."""
        rows = matrices * count * self.heads * self.graph.num_nodes * self.dtype.itemsize
        # The chain of a block of one-hot columns, which all heads share, and the product of each step with it.
        column = (self.num_steps + 1) * (self.heads + 1) * self.graph.num_nodes * self.dtype.itemsize
        block = min(count, self._block_size()) * column
        require_memory(rows + block, f"{count} rows of attention", "Ask for fewer nodes at a time.")

    def at(self, targets: Tensor, sources: Tensor) -> Tensor:
        """The values ``S[target, source]`` of chosen pairs, edges or not, shape ``(pairs, heads)``.

        The cost is that of as many columns as there are different targets, or different sources if these are fewer.
        Gradients flow; blocks of columns are then computed again in the backward pass instead of being kept.
        """
        if targets.numel() == 0:
            return torch.empty(0, self.heads, dtype=self.dtype, device=self.graph.device)
        by_target, by_source = torch.unique(targets), torch.unique(sources)
        use_targets = by_target.numel() <= by_source.numel()
        hot, along, other = (by_target, targets, sources) if use_targets else (by_source, sources, targets)
        order = torch.argsort(along, stable=True)
        picked = []
        for block in torch.split(hot, self._block_size()):
            first, last = torch.searchsorted(along[order], torch.stack([block[0], block[-1] + 1])).tolist()
            pairs = order[first:last]
            column = torch.searchsorted(block, along[pairs])
            picked.append(self._read(block, other[pairs], column, use_targets))
        return torch.cat(picked)[torch.argsort(order)]

    def _read(self, hot: Tensor, row: Tensor, column: Tensor, transpose: bool) -> Tensor:
        def read() -> Tensor:
            return self._one_hot_product(hot, transpose=transpose)[row, :, column]

        if torch.is_grad_enabled():
            values: Tensor = checkpoint(read, use_reentrant=False, preserve_rng_state=False)
            return values
        return read()

    def _one_hot_product(self, nodes: Tensor, *, transpose: bool) -> Tensor:
        V = torch.zeros(self.graph.num_nodes, 1, nodes.numel(), dtype=self.dtype, device=self.graph.device)
        V[nodes, 0, torch.arange(nodes.numel(), device=nodes.device)] = 1
        return self.matmul(V, transpose=transpose)

    def _block_size(self) -> int:
        # The features of all steps stand side by side in one wide product, and its result is as wide.
        column = 2 * (self.num_steps + 1) * self.graph.num_nodes * self.heads * self.dtype.itemsize
        return max(1, _BLOCK_BYTES // max(1, column))


class EdgeSupport(AttentionOperator):
    r"""S kept on the edges: Eq. (15), masked to the edges after each step.

    A step costs :math:`O(H \sum_i \deg_i^2)` time, and beyond the values themselves a scratch row of n x H numbers for
    each thread.

    Args:
        graph: The graph.
        G: GAT's attention at its entries, where S starts.
        alpha: The share of context, one number or one per head.
        xi: The weight of the affinity, one number or one per head.
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
        alpha: The share of context, one number or one per head.
        xi: The weight of the affinity, one number or one per head.
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
            # H (H^T V), from the right: d x d numbers per head instead of n x n.
            blocks = [torch.einsum("nhc,nhd->hcd", H, upwards[i][: H.size(0)]) for i, H in enumerate(features, start)]
            summed = self.graph.all_reduce(torch.stack(blocks)).unbind()
            for i, (H, block) in enumerate(zip(features, summed, strict=True), start):
                sources[i] = sources[i] + xi * torch.einsum("nhc,hcd->nhd", H, block)
        return sources

    def _wide(self, values: Tensor, factors: list[Tensor], transpose: bool) -> list[Tensor]:
        """One product with all factors side by side, which reads the values and the pattern once.

        Factors that are wide by themselves are multiplied one by one: to copy them would take longer than to read.
        """
        if len(factors) > 1 and factors[0].size(-1) >= _WIDE:
            return [spmm_heads(self.graph.pattern, values, factor, transpose=transpose) for factor in factors]
        wide = torch.cat(factors, dim=-1) if len(factors) > 1 else factors[0]
        product = spmm_heads(self.graph.pattern, values, wide, transpose=transpose)
        return list(torch.split(product, [factor.size(-1) for factor in factors], dim=-1))
