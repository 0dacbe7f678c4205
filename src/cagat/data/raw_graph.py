"""A graph as a file holds it: plain arrays, checked before anything is computed from them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.errors import DatasetError

Features: TypeAlias = Any
"""A `scipy.sparse.csr_matrix` or a two-dimensional float32 array, one row a node."""


def one_hot(nodes: int) -> Features:
    """The features of a graph that has none: every node is a feature of its own."""
    return sparse.identity(nodes, dtype=np.float32, format="csr")


def numbered_classes(what: str, labels: NDArray[np.int64]) -> list[str]:
    """The names of classes that have none: their numbers."""
    count = int(labels.max(initial=-1)) + 1
    if count > len(labels):
        raise DatasetError(f"{what}: label {count - 1} is out of range: there are only {len(labels)} nodes.")
    return [str(label) for label in range(count)]


@dataclass(frozen=True)
class RawGraph:
    """What every reader gives and every writer takes.

    Args:
        edge_index: int64 array of shape `(2, edges)`: sources, then targets, as the file lists them.
        features: One row a node, sparse (CSR) or dense, float32.
        labels: int64 array with the class of each node, -1 where there is none.
        node_names: One name a node.
        class_names: One name a class.
        feature_names: One name a column of `features`, or none at all.
        edge_weight: float32 array, one number an edge, or `None`.
        edge_attr: float32 array, one row an edge, or `None`.
        parts: Integer array with the user's own split, by the numbers of :mod:`cagat.data.parts`, or `None`.
        directed: Whether the direction of the edges is meant.
        name: What to call the graph.
        source: Where it came from, in words.
        sha256: Of the file it came from; empty when there was no single file.
    """

    edge_index: NDArray[np.int64]
    features: Features
    labels: NDArray[np.int64]
    node_names: list[str]
    class_names: list[str]
    feature_names: list[str] = field(default_factory=list)
    edge_weight: NDArray[np.float32] | None = None
    edge_attr: NDArray[np.float32] | None = None
    parts: NDArray[np.integer[Any]] | None = None
    directed: bool = False
    name: str = "graph"
    source: str = "memory"
    sha256: str = ""

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    def check(self) -> "RawGraph":
        """Return the graph itself, or raise :class:`DatasetError` that names what is wrong and where."""
        nodes, edges = self.num_nodes, self.edge_index.shape[-1]
        if nodes == 0:
            raise DatasetError(f"{self.name}: there are no nodes. Give at least one edge, feature row or label.")
        self._check_shapes(nodes, edges)
        if edges and not (self.edge_index.min() >= 0 and self.edge_index.max() < nodes):
            worst = self.edge_index.min() if self.edge_index.min() < 0 else self.edge_index.max()
            raise DatasetError(f"{self.name}: an edge names node {worst}, but nodes are 0 to {nodes - 1}.")
        if self.labels.min() < -1 or self.labels.max() >= len(self.class_names):
            worst = self.labels.min() if self.labels.min() < -1 else self.labels.max()
            raise DatasetError(
                f"{self.name}: label {worst} is out of range: there are {len(self.class_names)} classes, "
                "so labels are 0 to one less, or -1 for none."
            )
        if self.parts is not None and (self.parts.min() < 0 or self.parts.max() > 3):
            raise DatasetError(f"{self.name}: parts must be 0 (none), 1 (train), 2 (val) or 3 (test).")
        self._check_finite()
        return self

    def _check_shapes(self, nodes: int, edges: int) -> None:
        lengths = {
            "node_names": (len(self.node_names), nodes),
            "features (rows)": (self.features.shape[0], nodes),
            "edge_weight": (edges if self.edge_weight is None else len(self.edge_weight), edges),
            "edge_attr": (edges if self.edge_attr is None else len(self.edge_attr), edges),
            "parts": (nodes if self.parts is None else len(self.parts), nodes),
            "feature_names": (len(self.feature_names) or self.features.shape[1], self.features.shape[1]),
        }
        for what, (got, expected) in lengths.items():
            if got != expected:
                raise DatasetError(f"{self.name}: {what} has length {got}, expected {expected}.")
        named = (("node", self.node_names), ("class", self.class_names), ("feature", self.feature_names))
        for what, names in named:
            if (place := _not_writable(names)) is not None:
                raise DatasetError(
                    f"{self.name}: the name {names[place]!r} of {what} {place} (counted from 0) holds half a "
                    "character, which no file can hold. Write it as Unicode."
                )
        for what, names in named[:2]:
            if len(set(names)) != len(names):
                twice, _ = Counter(names).most_common(1)[0]
                raise DatasetError(f"{self.name}: the {what} name {twice!r} occurs more than once. Make names unique.")

    def _check_finite(self) -> None:
        values = self.features.data if sparse.issparse(self.features) else self.features
        for what, numbers in (("features", values), ("edge_weight", self.edge_weight), ("edge_attr", self.edge_attr)):
            if numbers is not None and not np.isfinite(numbers).all():
                count = int(np.size(numbers) - np.isfinite(numbers).sum())
                raise DatasetError(
                    f"{self.name}: {what} holds {count} values that are NaN or infinite. "
                    "Fill or remove them; a missing feature is best left out of the file or set to 0."
                )
        if self.edge_weight is not None and (self.edge_weight < 0).any():
            raise DatasetError(
                f"{self.name}: edge_weight holds {self.edge_weight.min()}; weights must be 0 or more, "
                "because rows of the adjacency matrix are divided by their sums."
            )


def _not_writable(names: list[str]) -> int | None:
    """The place of the first name that is no text in any encoding, if there is one."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return next(place for place, name in enumerate(names) if any("\ud800" <= letter <= "\udfff" for letter in name))
    return None
