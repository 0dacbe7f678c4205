"""Where the nodes of a graph are, and how much hangs on each: smoothed features and PageRank, by sparse products."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from cagat.data import normalize_features
from cagat.kernels import CSRGraph, spmm

WIDTH = 128
"""Wider features are reduced to so many dimensions before they are smoothed."""

BLOCK = 4096
"""Rows of a product of all pairs that are there at a time."""

_NARROW = 1024
"""Up to so many columns singular vectors are computed exactly, by way of the inner products of columns."""

_PAGERANK_STEPS = 100


class NodeSpace:
    r"""A graph with its features, as strategies look at it; each result is computed once.

    Args:
        x: Features, dense or sparse CSR. Rows are scaled to length 1; if they are wide, their first singular vectors
            take their place, which keeps inner products about as they were.
        edge_index: Sources and targets.
        edge_weight: A weight for each edge; 1 if none are given.
        seed: Of the random start of the singular vectors.
    """

    def __init__(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, seed: int = 0) -> None:
        self.num_nodes = x.shape[0]
        self.graph = CSRGraph.from_edge_index(
            edge_index, self.num_nodes, edge_weight, add_self_loops=False, dtype=torch.float32
        )
        values = self.graph.adjacency.float()
        self._weights = values, values[self.graph.pattern.perm_t.long()]
        self._smoothed: dict[tuple[int, float], NDArray[np.float32]] = {}
        self._x, self._seed = x, seed

    @cached_property
    def features(self) -> Tensor:
        """Dense features of at most :data:`WIDTH` columns, about of length 1."""
        return _reduced(normalize_features(self._x, "l2"), self._seed)

    def sums(self, x: Tensor) -> Tensor:
        """For each node the weighted sum of the rows of its neighbours."""
        return spmm(self.graph.pattern, self._weights, x)

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """How many neighbours each node has."""
        return np.asarray(self.graph.pattern.rowptr.diff().numpy().astype(np.int64))

    def neighbours(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The neighbours of nodes, one after the other."""
        rowptr, col = self.graph.pattern.rowptr.numpy(), self.graph.pattern.col.numpy()
        parts = [col[rowptr[node] : rowptr[node + 1]] for node in nodes.tolist()]
        return np.concatenate([*parts, np.empty(0, dtype=col.dtype)]).astype(np.int64)

    def smoothed(self, steps: int, restart: float = 0.0) -> NDArray[np.float32]:
        r"""The features after so many steps of :math:`Z \leftarrow (1 - r) \bar{A} Z + r X`.

        :math:`\bar{A}` is the adjacency matrix with self-loops of weight 1, symmetrically normalised. With a restart
        :math:`r > 0` these are the products of APPNP's diffusion.
        """
        if (steps, restart) not in self._smoothed:
            scale = (self.sums(torch.ones(self.num_nodes, 1)) + 1).rsqrt()
            z = self.features
            for _ in range(steps):
                scaled = scale * z
                z = (1 - restart) * scale * (self.sums(scaled) + scaled) + restart * self.features
            self._smoothed[steps, restart] = z.numpy()
        return self._smoothed[steps, restart]

    @cached_property
    def pagerank(self) -> NDArray[np.float64]:
        """The PageRank of each node, damped by 0.85, as a multiple of the mean; nodes without a way out jump."""
        n = self.num_nodes
        out = spmm(self.graph.pattern, self._weights, torch.ones(n, 1), transpose=True).double()
        rank = torch.ones(n, 1, dtype=torch.float64)
        for _ in range(_PAGERANK_STEPS):
            share = torch.where(out > 0, rank / out.clamp(min=torch.finfo(torch.float64).tiny), 0.0)
            lost = rank[out == 0].sum() / n
            following = 0.15 + 0.85 * (self.sums(share.float()).double() + lost)
            change, rank = (following - rank).abs().max().item(), following
            if change < 1e-6 * rank.max().item():
                break
        return np.asarray(rank[:, 0].numpy())


def unit_rows(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; a row of zeros stays zero."""
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return np.asarray(z / np.maximum(length, np.finfo(np.float32).tiny), dtype=np.float32)


def blocks(count: int) -> Iterator[slice]:
    """Parts of so many rows."""
    for start in range(0, count, BLOCK):
        yield slice(start, min(start + BLOCK, count))


def squared_distances(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of all pairs of rows."""
    found = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1)[None, :] - 2 * (a @ b.T)
    return np.asarray(np.maximum(found, 0), dtype=np.float32)


def _reduced(x: Tensor, seed: int) -> Tensor:
    """Dense features of at most :data:`WIDTH` columns."""
    if x.shape[1] <= WIDTH or min(x.shape) <= WIDTH:
        return (x if x.layout is torch.strided else x.to_dense()).float()
    if x.shape[1] <= _NARROW:
        dense = (x if x.layout is torch.strided else x.to_dense()).double()
        directions: Tensor = torch.linalg.eigh(dense.T @ dense).eigenvectors
        return (dense @ directions[:, -WIDTH:]).float()
    from sklearn.decomposition import TruncatedSVD

    matrix = (
        x.numpy()
        if x.layout is torch.strided
        else sparse.csr_matrix(
            (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=tuple(x.shape)
        )
    )
    found = TruncatedSVD(WIDTH, n_iter=4, random_state=seed).fit_transform(matrix)
    return torch.from_numpy(np.ascontiguousarray(found, dtype=np.float32))
