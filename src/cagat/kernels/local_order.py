"""Nodes in an order in which neighbours are near each other."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cagat.kernels.csr_pattern import CSRPattern


@dataclass(frozen=True, eq=False)
class LocalOrder:
    """A pattern whose rows and columns were put into another order, and the ways there and back.

    A product reads the rows of its neighbours' features. If these are near, they are still in the cache. The order is
    reverse Cuthill-McKee's; with it the diffusion takes two thirds of the time on PubMed and four fifths on Cora
    (docs/performance.md).

    Attributes:
        pattern: The pattern in the new order.
        nodes: The old number of each node.
        nodes_back: The new number of each node.
        entries: The old number of each entry.
    """

    pattern: CSRPattern
    nodes: Tensor
    nodes_back: Tensor
    entries: Tensor

    @classmethod
    def of(cls, pattern: CSRPattern) -> "LocalOrder":
        """Find an order for a square pattern."""
        nodes = _reverse_cuthill_mckee(pattern)
        nodes_back = torch.argsort(nodes)
        row, col = nodes_back[pattern.rows()], nodes_back[pattern.col.long()]
        entries = torch.argsort(row * pattern.num_rows + col)
        reordered = CSRPattern.from_sorted(row[entries], col[entries], pattern.num_rows, pattern.num_cols)
        index = reordered.col.dtype
        return cls(reordered, nodes.to(index), nodes_back, entries.to(index))

    def weights(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Values of the old entries in the order of the new ones, and of their transpose."""
        values = weight[self.entries]
        return values, values[self.pattern.perm_t.long()]


def _reverse_cuthill_mckee(pattern: CSRPattern) -> Tensor:
    if pattern.num_entries == 0:
        return torch.arange(pattern.num_rows)
    # Imported here, since only graphs need it, and those not at once.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = np.ones(pattern.num_entries, dtype=np.int8)
    matrix = csr_array((ones, pattern.col.numpy(), pattern.rowptr.numpy()), (pattern.num_rows, pattern.num_cols))
    return torch.from_numpy(reverse_cuthill_mckee(matrix).astype(np.int64))
