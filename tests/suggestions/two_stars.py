"""A graph on which every choice can be worked out by hand."""

import numpy as np
import torch

from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.strategy import Question

SIZE = 8
NOBODY = np.empty(0, dtype=np.int64)


def both_ways(pairs: list[tuple[int, int]]) -> torch.Tensor:
    edges = torch.tensor(pairs).T
    return torch.cat([edges, edges.flip(0)], dim=1)


def two_stars() -> NodeSpace:
    """Node 0 with the leaves 1 to 4, all of feature 0; node 5 with the leaves 6 and 7, all of feature 1."""
    pairs = [(0, leaf) for leaf in (1, 2, 3, 4)] + [(5, 6), (5, 7)]
    x = torch.zeros(SIZE, 2)
    x[:5, 0] = x[5:, 1] = 1
    return NodeSpace(x, both_ways(pairs))


def hub_rank(leaves: int) -> float:
    """The PageRank of a star's centre: h = 0.15 + 0.85 m l, and that of a leaf l = 0.15 + 0.85 h / m."""
    return (0.15 + 0.1275 * leaves) / 0.2775


def ask(budget: int, labelled: tuple[int, ...] = (), **further: object) -> Question:
    return Question(two_stars(), np.array(labelled, dtype=np.int64), budget, **further)
