"""What every form of the attention matrix can do."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cagat.diffusion.chain import Chain
from cagat.kernels import CSRGraph
from cagat.memory import require_memory

# One-hot columns are multiplied in blocks that take about this many bytes.
_BLOCK_BYTES = 2**27


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
