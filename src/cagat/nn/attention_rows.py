"""The attention of chosen nodes."""

from typing import NamedTuple

from torch import Tensor


class AttentionRows(NamedTuple):
    """How much chosen nodes attend to every node of the graph, edge or not.

    Attributes:
        nodes: The nodes, shape ``(m,)``.
        G: GAT's attention, which is zero off the edges, shape ``(m, heads, n)``.
        S: The context-aware attention, shape ``(m, heads, n)``.
    """

    nodes: Tensor
    G: Tensor
    S: Tensor
