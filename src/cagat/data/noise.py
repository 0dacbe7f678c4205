"""Graphs with edges added or dropped at random, for trials of how much a model relies on them."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from cagat.data.distinct import distinct
from cagat.data.raw_graph import RawGraph
from cagat.data.spelled_numbers import spelled_numbers
from cagat.errors import DatasetError

_MOST_ADDED = 1000


@dataclass(frozen=True)
class Noise:
    """Random changes of the edges of an undirected graph without weights, a pure function of these three numbers.

    Edges are dropped first, all equally likely; then pairs of nodes that have never been joined are, all equally
    likely. Nodes stay, also those without any edge left, and so do features and labels.

    Args:
        added: How many edges are added, in percent of those that there were.
        dropped: How many are dropped, in percent.
        seed: 0 to 2**32 - 1.
    """

    added: int = 0
    dropped: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("added", _MOST_ADDED), ("dropped", 100), ("seed", 2**32 - 1)):
            if not 0 <= getattr(self, name) <= most:
                raise DatasetError(f"noise: {name}={getattr(self, name)} must be at least 0 and at most {most}.")

    @classmethod
    def parse(cls, words: str) -> "Noise":
        """Read `NAME:added=50,dropped=20,seed=0`, of which any part behind the colon may be left out."""
        return cls(**spelled_numbers(words, [field.name for field in fields(cls)]))

    def applied(self, graph: RawGraph) -> RawGraph:
        """The graph, tidied before, with its edges changed.

        Raises:
            DatasetError: There are not so many pairs of nodes that could be joined.
        """
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
        added = _never_joined(random, before, nodes, wanted)
        low, high = np.divmod(np.concatenate([kept, added]), nodes)
        keys = distinct(np.concatenate([low * nodes + high, high * nodes + low]))
        described = f"{graph.source}, then {self.dropped} % of its edges dropped and {self.added} % added at random"
        return replace(graph, edge_index=np.stack(np.divmod(keys, nodes)), source=described)


def _never_joined(
    random: np.random.RandomState, before: NDArray[np.int64], nodes: int, wanted: int
) -> NDArray[np.int64]:
    """So many pairs of nodes, the lower one first, as numbers, none of which there has been."""
    pairs: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    while count := wanted - len(pairs):  # Repetitions, loops and old edges are drawn again, mostly in a few rounds.
        ends = random.randint(0, nodes, (2, count))
        keys = ends.min(axis=0) * nodes + ends.max(axis=0)
        new = keys[(ends[0] != ends[1]) & ~np.isin(keys, before)]
        pairs = distinct(np.concatenate([pairs, new]))
    return pairs
