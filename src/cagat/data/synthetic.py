"""Random attributed graphs of any size, for trials of scale."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.distinct import distinct
from cagat.data.memory import require_memory
from cagat.data.raw_graph import Features, RawGraph
from cagat.data.spelled_numbers import spelled_numbers
from cagat.errors import DatasetError

_HOMOPHILY = 0.8  # The share of edges that stay within a class before chance adds some.
_TOPICAL = 0.5  # The share of a node's features that its class draws; the others come from all classes alike.


@dataclass(frozen=True)
class Synthetic:
    """A degree-corrected block model with class-dependent sparse features, a pure function of these five numbers.

    Every node has a propensity with a heavy tail (Pareto, exponent 2.5, cut at 100 times the least), and edges join
    nodes in proportion to it; four of five edges are drawn within a class. Classes are equally large, all nodes
    labelled. A node has about a quarter of the features, at most 16: half drawn from all features, half from those
    of its class.

    Args:
        nodes: How many.
        degree: Average number of neighbours: there are `nodes * degree // 2` undirected edges.
        classes: How many.
        features: Columns, all 0 or 1.
        seed: 0 to 2**32 - 1.
    """

    nodes: int = 1000
    degree: int = 10
    classes: int = 4
    features: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"nodes": 2 * self.classes, "degree": 1, "classes": 1, "features": self.classes, "seed": 0}
        most = {"degree": max(1, (self.nodes - 1) // 4), "seed": 2**32 - 1}
        for name, value in vars(self).items():
            if not least[name] <= value <= most.get(name, value):
                upper = f" and at most {most[name]}" if name in most else ""
                raise DatasetError(f"synthetic: {name}={value} must be at least {least[name]}{upper}.")

    @classmethod
    def parse(cls, words: str) -> "Synthetic":
        """Read `synthetic:nodes=100000,degree=10,classes=8,features=64,seed=0`, of which any part may be left out."""
        return cls(**spelled_numbers(words, [field.name for field in fields(cls)]))

    @property
    def words(self) -> str:
        """What :meth:`parse` reads."""
        return "synthetic:" + ",".join(f"{name}={value}" for name, value in vars(self).items())

    @property
    def _features_drawn(self) -> int:
        return max(1, min(self.features // 4, 16))

    def graph(self) -> RawGraph:
        """Draw the graph."""
        size = 8 * self.nodes * (4 * self.degree + 4 * self._features_drawn)
        require_memory(self.words, size, "Ask for fewer nodes or a smaller degree.")
        random = np.random.RandomState(self.seed)  # Like splits: a stream that NumPy will not change.
        labels = np.arange(self.nodes) % self.classes
        random.shuffle(labels)
        return RawGraph(
            edge_index=self._edges(random, labels),
            features=self._features(random, labels),
            labels=labels.astype(np.int64),
            node_names=[str(node) for node in range(self.nodes)],
            class_names=[str(label) for label in range(self.classes)],
            name=self.words,
            source="drawn at random",
        )

    def _edges(self, random: np.random.RandomState, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(labels, kind="stable")
        propensity = np.minimum(random.pareto(1.5, self.nodes) + 1, 100.0)
        total = np.concatenate([[0.0], np.cumsum(propensity[order])])
        bounds = total[np.searchsorted(labels[order], np.arange(self.classes + 1))]
        wanted = self.nodes * self.degree // 2
        pairs: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        while count := wanted - len(pairs):  # Repetitions and loops are drawn again, mostly in a few rounds.
            source = order[_draw(random, total, np.zeros(count), np.full(count, total[-1]))]
            within = random.random_sample(count) < _HOMOPHILY
            low = np.where(within, bounds[labels[source]], 0.0)
            high = np.where(within, bounds[labels[source] + 1], total[-1])
            target = order[_draw(random, total, low, high)]
            proper = source != target
            keys = np.minimum(source, target) * self.nodes + np.maximum(source, target)
            pairs = distinct(np.concatenate([pairs, keys[proper]]))
        return np.stack(np.divmod(pairs, self.nodes))

    def _features(self, random: np.random.RandomState, labels: NDArray[np.int64]) -> Features:
        drawn = self._features_drawn
        column = random.randint(0, self.features, (self.nodes, drawn))
        topical = random.random_sample((self.nodes, drawn)) < _TOPICAL
        # The features whose number leaves the remainder c belong to class c; the last few may belong to none.
        own = self.features // self.classes
        column = np.where(topical, column % own * self.classes + labels[:, None], column)
        row = np.repeat(np.arange(self.nodes), drawn)
        matrix = sparse.csr_matrix(
            (np.ones(column.size, dtype=np.float32), (row, column.ravel())), shape=(self.nodes, self.features)
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix


def _draw(
    random: np.random.RandomState, total: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Positions in proportion to the steps of the running `total`, each between its own bounds."""
    point = low + random.random_sample(len(low)) * (high - low)
    return np.clip(np.searchsorted(total, point, side="right") - 1, 0, len(total) - 2)
