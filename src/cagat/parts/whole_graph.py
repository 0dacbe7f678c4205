"""A graph that is to be cut: the rows of its matrix A, in memory or on disk, and what is known of its nodes."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES, Features, numbered


class Entries(NamedTuple):
    """Some rows of a matrix, one after the other.

    Attributes:
        ptr: Where each row begins.
        col: The columns, ascending in each row.
        numbers: The numbers that the entries have in the whole matrix.
        values: Their values; ``None`` if all are 1.
    """

    ptr: NDArray[np.int64]
    col: NDArray[np.int64]
    numbers: NDArray[np.int64]
    values: NDArray[np.float64] | None

    def rows(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


@dataclass(frozen=True)
class MatrixRows:
    """A sparse matrix by its rows; columns and values may be files that are read where they are needed."""

    ptr: NDArray[np.int64]
    col: NDArray[np.integer[Any]]
    values: NDArray[np.float64] | None = None

    @classmethod
    def of_edges(
        cls, row: NDArray[np.int64], col: NDArray[np.int64], values: NDArray[np.float64] | None, nodes: int
    ) -> "MatrixRows":
        """The matrix with these entries, none given twice, and with 1 on its diagonal where they leave it open."""
        has_loop = np.zeros(nodes, dtype=bool)
        has_loop[row[row == col]] = True
        loops = np.flatnonzero(~has_loop)
        row, col = np.concatenate([row, loops]), np.concatenate([col, loops])
        order = np.argsort(row * nodes + col)
        if values is not None:
            values = np.concatenate([values, np.ones(len(loops))])[order]
        ptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
        return cls(ptr, col[order], values)

    def take(self, rows: NDArray[np.int64]) -> Entries:
        """Some of the rows."""
        counts = np.diff(self.ptr)[rows]
        ptr = np.concatenate([[0], np.cumsum(counts)])
        numbers = np.arange(ptr[-1]) + np.repeat(self.ptr[rows] - ptr[:-1], counts)
        values = None if self.values is None else np.asarray(self.values[numbers])
        return Entries(ptr, np.asarray(self.col[numbers], dtype=np.int64), numbers, values)

    def row_sums(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sums of some rows; none is empty, since the diagonal is there."""
        if self.values is None:
            return np.diff(self.ptr)[rows].astype(np.float64)
        ptr, *_, values = self.take(rows)
        assert values is not None
        return np.asarray(np.add.reduceat(values, ptr[:-1]) if len(rows) else values)

    def blocks(self, entries: int) -> list[int]:
        """Where blocks of rows begin that have about so many entries each, and where the last ends."""
        steps = np.arange(entries, self.ptr[-1], entries)
        return sorted({0, *np.searchsorted(self.ptr, steps).tolist(), len(self.ptr) - 1})

    def columns(self, start: int, stop: int) -> NDArray[np.int64]:
        """The columns of the rows from one to another."""
        return np.asarray(self.col[self.ptr[start] : self.ptr[stop]], dtype=np.int64)


@dataclass(frozen=True)
class WholeGraph:
    """A graph of which only what grows with the nodes must be in memory.

    Attributes:
        rows: The rows of A, in which row i holds the edges into node i, and a loop at each node.
        rows_t: Those of its transpose; ``None`` if the graph is undirected, for which they are the same.
        features: One row per node.
        labels: The class of each node, -1 for none.
        split_codes: The graph's own split, if it has one.
        node_names: ``None`` if nodes are called by their numbers.
        source: Which graph it is; a run that is cut off goes on only with the same.
    """

    name: str
    source: str
    rows: MatrixRows
    rows_t: MatrixRows | None
    features: Features
    labels: NDArray[np.int64]
    split_codes: NDArray[np.integer[Any]] | None
    node_names: list[str] | None
    class_names: list[str]
    feature_names: list[str]

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    @classmethod
    def of_data(cls, graph: Data, digest: str) -> "WholeGraph":
        """A graph that was loaded, as models take it; the digest says which it is."""
        nodes, (source, target) = int(graph.num_nodes), graph.edge_index.numpy()
        weight = getattr(graph, "edge_weight", None)
        values = None if weight is None else weight.numpy().astype(np.float64)
        codes = np.zeros(nodes, dtype=np.int8)
        for code, part in enumerate(SPLIT_NAMES, start=1):
            if f"{part}_mask" in graph:
                codes[graph[f"{part}_mask"].numpy()] = code
        names = list(graph.node_names)
        return cls(
            name=graph.name,
            source=digest,
            rows=MatrixRows.of_edges(target, source, values, nodes),
            rows_t=MatrixRows.of_edges(source, target, values, nodes) if graph.directed else None,
            features=_features(graph.x),
            labels=graph.y.numpy(),
            split_codes=codes if codes.any() or "train_mask" in graph else None,
            node_names=None if names == numbered(nodes) else names,
            class_names=list(graph.class_names),
            feature_names=list(graph.feature_names),
        )


def _features(x: Tensor) -> Features:
    if not x.is_sparse_csr:
        return x.numpy()
    arrays = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return sparse.csr_matrix(arrays, shape=tuple(x.shape))
