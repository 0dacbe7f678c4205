"""A graph as plain arrays: what every reader returns and every writer takes."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.validation import as_float32, check_range
from cagat.errors import DatasetError

if TYPE_CHECKING:
    from cagat.data.encoding import TableEncoder

SPLIT_NAMES = ("train", "val", "test")
"""Their split codes, in arrays and files, are 1, 2 and 3; 0 is a node in none of them."""
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")

Features: TypeAlias = Any
"""A `scipy.sparse.csr_matrix` or a two-dimensional float32 array, one row per node."""


def numbered(count: int) -> list[str]:
    """Names for nodes or classes without any: their numbers."""
    return [str(number) for number in range(count)]


def renumbered(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    """Labels whose classes are numbered without gaps, and the names of these classes: their numbers before that.

    Without a gap, the labels themselves and no names; likewise with a label below -1, which is wrong.
    """
    present = sorted_unique(labels[labels >= 0])
    if labels.min(initial=0) < -1 or len(present) == labels.max(initial=-1) + 1:
        return labels, []
    return np.where(labels < 0, -1, np.searchsorted(present, labels)), [str(label) for label in present.tolist()]


def sorted_unique(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct keys in order, as `np.unique` gives them, which for ten million keys takes 11.5 s instead of 0.2."""
    if (keys[1:] > keys[:-1]).all():
        return keys
    ordered = np.sort(keys)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])])


def edges_of_matrix(what: str, adjacency: Any) -> dict[str, Any]:
    """The `edge_index` and `edge_weight` of a sparse adjacency matrix; entries that are all 1 are no weights."""
    if adjacency.shape[0] != adjacency.shape[1]:
        raise DatasetError(f"{what}: the adjacency matrix has shape {adjacency.shape}; it must be square.")
    edges = adjacency.tocoo()
    weight = as_float32(f"{what}: the adjacency matrix", edges.data)
    index = np.stack([edges.row, edges.col]).astype(np.int64)
    return {"edge_index": index, "edge_weight": None if (weight == 1).all() else weight}


@dataclass(frozen=True)
class RawGraph:
    """A graph in memory, before it becomes a PyG `Data`.

    `edge_index` has shape `(2, edges)`: sources, then targets. `labels` are -1 where a node has none, `split_codes` the
    user's own split (see :data:`SPLIT_NAMES`). `source` says in words where the graph came from, `sha256` is that of
    its file, if there was one. `described` says which nodes had a row in the table of features, `encoder` is what made
    features of a table of mixed columns, and `duplicate_entries` counts merged rows of a sparse table. What is not
    given is filled in: without `features` every node is a feature of its own, and nodes and classes without names are
    called by their numbers.
    """

    edge_index: NDArray[np.int64]
    features: Features
    labels: NDArray[np.int64]
    node_names: list[str] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)
    feature_names: list[str] = field(default_factory=list)
    edge_weight: NDArray[np.float32] | None = None
    edge_attr: NDArray[np.float32] | None = None
    split_codes: NDArray[np.integer[Any]] | None = None
    directed: bool = False
    name: str = "graph"
    source: str = "memory"
    sha256: str = ""
    described: NDArray[np.bool_] | None = None
    encoder: "TableEncoder | None" = None
    duplicate_entries: int = 0

    def __post_init__(self) -> None:
        nodes, classes = self.num_nodes, int(self.labels.max(initial=-1)) + 1
        if self.features is None:
            object.__setattr__(self, "features", sparse.identity(nodes, dtype=np.float32, format="csr"))
        if not self.node_names:
            object.__setattr__(self, "node_names", numbered(nodes))
        if not self.class_names:
            if classes > nodes:
                raise DatasetError(f"{self.name}: label {classes - 1} is out of range: there are only {nodes} nodes.")
            object.__setattr__(self, "class_names", numbered(classes))

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self.labels)

    def check(self) -> "RawGraph":
        """Return the graph itself, or raise :class:`DatasetError` that names what is wrong and where."""
        nodes = self.num_nodes
        if nodes == 0:
            raise DatasetError(f"{self.name}: there are no nodes. Give at least one edge, feature row or label.")
        edges, columns = self.edge_index.shape[-1], self.features.shape[1]
        lengths = {"node_names": nodes, "features": nodes, "split_codes": nodes, "edge_weight": edges}
        lengths |= {"edge_attr": edges, "feature_names": columns if self.feature_names else 0}
        for what, expected in lengths.items():
            values = getattr(self, what)
            got = expected if values is None else values.shape[0] if hasattr(values, "shape") else len(values)
            if got != expected:
                raise DatasetError(f"{self.name}: {what} has length {got}, expected {expected}.")
        for what, names in (("node", self.node_names), ("class", self.class_names), ("feature", self.feature_names)):
            if half := [name for name in names if _HALF_A_CHARACTER.search(name)]:
                raise DatasetError(f"{self.name}: the {what} name {half[0]!r} holds half a character. Write Unicode.")
            if what != "feature" and len(set(names)) != len(names):
                twice, _ = Counter(names).most_common(1)[0]
                raise DatasetError(f"{self.name}: the {what} name {twice!r} occurs more than once. Make names unique.")
        ends, classes = f"{self.name}: edge_index: node", len(self.class_names)
        check_range(ends, self.edge_index, 0, nodes - 1, f"nodes are 0 to {nodes - 1}")
        check_range(f"{self.name}: label", self.labels, -1, classes - 1, f"there are {classes} classes, -1 is no label")
        if self.split_codes is not None:
            check_range(f"{self.name}: split code", self.split_codes, 0, 3, "0 is none, 1 train, 2 val, 3 test")
        values = self.features.data if sparse.issparse(self.features) else self.features
        for what, numbers in (("features", values), ("edge_weight", self.edge_weight), ("edge_attr", self.edge_attr)):
            if numbers is not None and len(wrong := np.argwhere(~np.isfinite(numbers))):
                raise DatasetError(
                    f"{self.name}: {what} holds {len(wrong)} values that are NaN or infinite, the first "
                    f"{self._whose(what, *wrong[0])}. Remove them, or set missing features to 0."
                )
        if self.edge_weight is not None and (self.edge_weight < 0).any():
            least = int(self.edge_weight.argmin())
            what = f"{self.name}: edge_weight holds {self.edge_weight[least]} {self._whose('edge_weight', least)}"
            raise DatasetError(f"{what}; weights must be 0 or more. Remove or shift them.")
        return self

    def _whose(self, what: str, row: int, column: int = 0) -> str:
        """Which node or edge a number is about, by the number's place in an array."""
        if what != "features":
            source, target = (self.node_names[node] for node in self.edge_index[:, row])
            return f"for the edge from {source!r} to {target!r}"
        if sparse.issparse(self.features):
            entry = row
            row, column = np.searchsorted(self.features.indptr, entry, "right") - 1, self.features.indices[entry]
        feature = repr(self.feature_names[column]) if self.feature_names else column
        return f"for node {self.node_names[row]!r}, feature {feature}"
