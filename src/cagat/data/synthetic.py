"""Graphs that are made on the spot: random ones, noise for published ones, digits, breast_cancer and karate."""

import re
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.graph import Features, RawGraph, sorted_unique
from cagat.data.validation import require_memory
from cagat.errors import DatasetError

_Parsed = TypeVar("_Parsed", bound="_Numbers")
_MOST_SEED = 2**32 - 1
_HOMOPHILY = 0.8  # The share of edges that stay within a class before chance adds some.
_TOPICAL = 0.5  # The share of a node's features that its class draws; the others come from all classes alike.
_NEIGHBOURS = 8  # Of each row of a table.


@dataclass(frozen=True)
class _Numbers:
    """Whole numbers that a name gives."""

    @classmethod
    def parse(cls: type[_Parsed], name: str) -> _Parsed:
        """Read what stands behind the colon of `name:key=NUMBER,...`; keys may be left out."""
        known, given = [field.name for field in fields(cls)], dict[str, int]()
        for word in name.partition(":")[2].split(",") if ":" in name else []:
            key, _, value = word.partition("=")
            if key not in known or not re.fullmatch("[0-9]{1,18}", value):
                raise DatasetError(f"{name}: {word!r} is not one of {', '.join(f'{key}=NUMBER' for key in known)}.")
            if key in given:
                raise DatasetError(f"{name}: {key} is given twice. Give it once.")
            given[key] = int(value)
        return cls(**given)

    def _check(self, what: str, least: dict[str, int], most: dict[str, int]) -> None:
        for name, value in vars(self).items():
            low, high = least.get(name, 0), most.get(name, value)
            if not low <= value <= high:
                upper = f" and at most {high}" if name in most else ""
                raise DatasetError(f"{what}: {name}={value} must be at least {low}{upper}.")


@dataclass(frozen=True)
class Synthetic(_Numbers):
    """A degree-corrected block model with class-dependent sparse features, a pure function of these five numbers.

    Every node has a propensity with a heavy tail (Pareto, exponent 2.5, cut at 100 times the least), and
    `nodes * degree // 2` undirected edges join nodes in proportion to it, four of five within a class. Classes are
    equally large, all nodes labelled. A node has about a quarter of the features, at most 16, all 0 or 1: half drawn
    from all features, half from those of its class.
    """

    nodes: int = 1000
    degree: int = 10
    classes: int = 4
    features: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"nodes": 2 * self.classes, "degree": 1, "classes": 1, "features": self.classes}
        self._check("synthetic", least, {"degree": max(1, (self.nodes - 1) // 4), "seed": _MOST_SEED})

    @property
    def name(self) -> str:
        """What `parse` reads: `synthetic:nodes=100000,degree=10,classes=8,features=64,seed=0`."""
        return "synthetic:" + ",".join(f"{name}={value}" for name, value in vars(self).items())

    def graph(self) -> RawGraph:
        """Draw the graph."""
        drawn = max(1, min(self.features // 4, 16))
        size = 8 * self.nodes * (4 * self.degree + 4 * drawn)
        require_memory(self.name, size, "Ask for fewer nodes or a smaller degree.")
        random = np.random.RandomState(self.seed)  # Like splits: a stream that NumPy will not change.
        labels = np.arange(self.nodes) % self.classes
        random.shuffle(labels)
        return RawGraph(
            edge_index=self._edges(random, labels),
            features=self._features(random, labels, drawn),
            labels=labels.astype(np.int64),
            name=self.name,
            source="drawn at random",
        )

    def _edges(self, random: np.random.RandomState, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(labels, kind="stable")
        propensity = np.minimum(random.pareto(1.5, self.nodes) + 1, 100.0)
        total = np.concatenate([[0.0], np.cumsum(propensity[order])])
        bounds = total[np.searchsorted(labels[order], np.arange(self.classes + 1))]
        wanted = self.nodes * self.degree // 2

        def draw(count: int, low: Any, high: Any) -> Any:
            point = low + random.random_sample(count) * (high - low)
            return order[np.clip(np.searchsorted(total, point, side="right") - 1, 0, self.nodes - 1)]

        pairs: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        while count := wanted - len(pairs):  # Repetitions and loops are drawn again, mostly in a few rounds.
            source = draw(count, 0.0, total[-1])
            within = random.random_sample(count) < _HOMOPHILY
            low = np.where(within, bounds[labels[source]], 0.0)
            high = np.where(within, bounds[labels[source] + 1], total[-1])
            target = draw(count, low, high)
            keys = np.minimum(source, target) * self.nodes + np.maximum(source, target)
            pairs = sorted_unique(np.concatenate([pairs, keys[source != target]]))
        return np.stack(np.divmod(pairs, self.nodes))

    def _features(self, random: np.random.RandomState, labels: NDArray[np.int64], drawn: int) -> Features:
        column = random.randint(0, self.features, (self.nodes, drawn))
        topical = random.random_sample((self.nodes, drawn)) < _TOPICAL
        # The features whose number leaves the remainder c belong to class c; the last few may belong to none.
        own = self.features // self.classes
        column = np.where(topical, column % own * self.classes + labels[:, None], column)
        row = np.repeat(np.arange(self.nodes), drawn)
        matrix = sparse.csr_matrix(
            (np.ones(column.size, dtype=np.float32), (row, column.ravel())), shape=(self.nodes, self.features)
        )
        matrix.data[:] = 1
        return matrix


@dataclass(frozen=True)
class Noise(_Numbers):
    """Random changes of the edges of an undirected graph without weights, a pure function of these three numbers.

    Edges are dropped first, all equally likely; then pairs of nodes that have never been joined are, all equally
    likely. Nodes stay, also those without any edge left, and so do features and labels. `added` and `dropped` are in
    percent of the edges that there were.
    """

    added: int = 0
    dropped: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        self._check("noise", {}, {"added": 1000, "dropped": 100, "seed": _MOST_SEED})

    def applied(self, graph: RawGraph) -> RawGraph:
        """A clean graph with its edges changed."""
        nodes, (source, target) = graph.num_nodes, graph.edge_index
        before = (source * nodes + target)[source < target]
        wanted = round(len(before) * self.added / 100)
        free = nodes * (nodes - 1) // 2 - len(before)
        if wanted > free // 2:
            raise DatasetError(
                f"{graph.name}: added={self.added} asks for {wanted} edges more, but only {free} pairs of nodes are "
                "not joined, and at most half of these may be. Add fewer."
            )
        random = np.random.RandomState(self.seed)  # Like splits: a stream that NumPy will not change.
        kept = before[random.permutation(len(before))[round(len(before) * self.dropped / 100) :]]
        added: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        while count := wanted - len(added):  # Repetitions, loops and old edges are drawn again, mostly in a few rounds.
            ends = random.randint(0, nodes, (2, count))
            keys = ends.min(axis=0) * nodes + ends.max(axis=0)
            new = keys[(ends[0] != ends[1]) & ~np.isin(keys, before)]
            added = sorted_unique(np.concatenate([added, new]))
        low, high = np.divmod(np.concatenate([kept, added]), nodes)
        keys = sorted_unique(np.concatenate([low * nodes + high, high * nodes + low]))
        described = f"{graph.source}, then {self.dropped} % of its edges dropped and {self.added} % added at random"
        return replace(graph, edge_index=np.stack(np.divmod(keys, nodes)), source=described)


def digits() -> RawGraph:
    """Scikit-learn's 1797 images of 8 x 8 pixels, each joined to the 8 nearest to it in Euclidean distance."""
    from sklearn.datasets import load_digits

    images = load_digits()
    # Pixels are small whole numbers, so that these distances are exact. A search that rounds them decides between
    # equally near images by the order of its sums, and so by the number of threads.
    lengths = np.square(images.data).sum(axis=1)
    distances = lengths[:, None] + lengths[None, :] - 2 * (images.data @ images.data.T)
    return RawGraph(
        edge_index=_nearest(distances),
        features=images.data.astype(np.float32),
        labels=images.target.astype(np.int64),
        feature_names=list(images.feature_names),
        name="digits",
        source="sklearn.datasets.load_digits",
    )


def breast_cancer() -> RawGraph:
    """Scikit-learn's 569 tumours with 30 measurements, standardised, each joined to the 8 nearest."""
    from sklearn.datasets import load_breast_cancer

    tumours = load_breast_cancer()
    standardised = (tumours.data - tumours.data.mean(axis=0)) / tumours.data.std(axis=0)
    distances = np.square(standardised[:, None] - standardised[None, :]).sum(axis=2)
    return RawGraph(
        edge_index=_nearest(distances),
        features=standardised.astype(np.float32),
        labels=tumours.target.astype(np.int64),
        class_names=[str(name) for name in tumours.target_names],
        feature_names=[str(name) for name in tumours.feature_names],
        name="breast_cancer",
        source="sklearn.datasets.load_breast_cancer",
    )


def _nearest(distances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Edges from every row to the rows that are nearest to it, of two equally near ones the first."""
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :_NEIGHBOURS].astype(np.int64)
    return np.stack([np.repeat(np.arange(len(nearest)), _NEIGHBOURS), nearest.ravel()])


def karate() -> RawGraph:
    """Zachary's karate club: 34 members, 78 friendships, and which of two clubs each joined; one-hot features."""
    import networkx

    club = networkx.karate_club_graph()
    clubs = ["Mr. Hi", "Officer"]
    return RawGraph(
        edge_index=np.array(club.edges, dtype=np.int64).T,
        features=None,
        labels=np.array([clubs.index(club.nodes[member]["club"]) for member in club], dtype=np.int64),
        class_names=clubs,
        name="karate",
        source="networkx.karate_club_graph",
    )
