"""The attention of all nodes, as its products."""

from typing import NamedTuple

from cagat.diffusion import EdgeSupport, FullSupport


class AttentionOperators(NamedTuple):
    """How much every node attends to every other; known by products, rows and single pairs, and never formed.

    Attributes:
        G: GAT's attention, which is zero off the edges.
        S: The context-aware attention.
    """

    G: EdgeSupport
    S: FullSupport | EdgeSupport
