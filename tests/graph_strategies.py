"""Random graphs for hypothesis: empty, with isolated nodes, duplicate edges, self-loops, directed, weighted."""

from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor


class RandomGraph(NamedTuple):
    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None


@st.composite
def graphs(draw: st.DrawFn, min_nodes: int = 0, max_nodes: int = 8, weighted: bool | None = None) -> RandomGraph:
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    node = st.integers(0, max(0, num_nodes - 1))
    edges = draw(st.lists(st.tuples(node, node), max_size=20 if num_nodes else 0))
    if edges and draw(st.booleans()):  # Some of them twice.
        edges += edges[: draw(st.integers(1, len(edges)))]
    if draw(st.booleans()):  # Undirected.
        edges += [(target, source) for source, target in edges]
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    if not (draw(st.booleans()) if weighted is None else weighted):
        return RandomGraph(edge_index, num_nodes, None)
    weights = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=len(edges), max_size=len(edges)))
    return RandomGraph(edge_index, num_nodes, torch.tensor(weights, dtype=torch.float64))
