"""The contract of strategies, and the greedy choice that several of them make."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cagat.suggestions.node_space import NodeSpace

_BATCH = 64


@dataclass(frozen=True)
class Question:
    """What a strategy is told.

    Attributes:
        space: The graph and its features.
        labelled: The nodes that have a label already.
        budget: How many nodes to choose; there are at least as many without a label.
        seed: Decides what is drawn at random.
        probabilities: What a model knows: the probability of each class, one row per node. Without a model, nothing.
        num_classes: How many classes there are, or are thought to be.
    """

    space: NodeSpace
    labelled: NDArray[np.int64]
    budget: int
    seed: int = 0
    probabilities: NDArray[np.float64] | None = None
    num_classes: int = 2

    @cached_property
    def unlabelled(self) -> NDArray[np.int64]:
        """The nodes to choose from, in order."""
        return np.setdiff1d(np.arange(self.space.num_nodes), self.labelled)

    @cached_property
    def uncertainty(self) -> NDArray[np.float64] | None:
        """The entropy of each node's prediction, from 0 to 1."""
        if self.probabilities is None:
            return None
        p = np.clip(self.probabilities, np.finfo(np.float64).tiny, 1)
        return np.asarray(-(p * np.log(p)).sum(axis=1) / np.log(max(2, p.shape[1])))


class Choice(NamedTuple):
    """A chosen node, how much it is worth to the strategy, and why it was chosen."""

    node: int
    score: float
    reason: str


Strategy = Callable[[Question], list[Choice]]
"""Chooses as many nodes as asked for, none of them labelled, in the order in which they should be labelled."""


def lazy_greedy(
    count: int, budget: int, gains: Callable[[NDArray[np.int64]], NDArray[np.float64]], take: Callable[[int], None]
) -> Iterator[tuple[int, float]]:
    """Choose candidates 0 to `count - 1`, each time the one that gains most, without computing every gain every time.

    Gains must not grow as more is chosen (the objective is submodular): what a candidate once gained is then a bound,
    and only those whose bound is the largest are computed anew (`CELF <https://doi.org/10.1145/1281192.1281239>`_).

    Args:
        count: The number of candidates.
        budget: How many to choose.
        gains: What each of some candidates would gain now.
        take: Called with each candidate that was chosen, before gains are asked for again.
    """
    bounds, known = gains(np.arange(count)), np.zeros(count, dtype=np.int64)
    for turn in range(min(budget, count)):
        while known[best := int(bounds.argmax())] != turn:
            most = np.union1d(np.argpartition(-bounds, min(_BATCH, count - 1))[:_BATCH], best)
            stale = most[(known[most] != turn) & np.isfinite(bounds[most])]
            bounds[stale] = gains(stale)
            known[stale] = turn
        gain = float(bounds[best])
        bounds[best] = -np.inf
        take(best)
        yield best, gain
