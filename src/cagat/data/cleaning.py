"""From a graph as a file holds it to the graph that is computed on."""

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cagat.data.graph import Features, RawGraph, sorted_unique

_log = logging.getLogger("cagat.data")


@dataclass(frozen=True)
class CleaningReport:
    """Counts of what was dropped, merged or found wanting; all zero for a graph without surprises."""

    self_loops: int = 0
    zero_weight_edges: int = 0
    duplicate_edges: int = 0
    duplicate_entries: int = 0
    opposite_edges: int = 0
    outside_component: int = 0
    component_taken: bool = False
    without_features: int = 0

    def sentences(self) -> list[str]:
        """One sentence for each count that is not zero."""
        fate = "dropped" if self.component_taken else "kept"
        counts = (
            (self.self_loops, "self-loop", "dropped (the layer adds one to every node)"),
            (self.zero_weight_edges, "edge", "of weight 0 dropped"),
            (self.duplicate_edges, "duplicate edge", "merged"),
            (self.duplicate_entries, "duplicate sparse feature", "merged"),
            (self.opposite_edges, "edge", "given both ways, so the two weights were added up"),
            (self.outside_component, "node", f"outside the largest component {fate}"),
            (self.without_features, "node", "without features"),
        )
        return [f"{count} {what}{'' if count == 1 else 's'} {rest}" for count, what, rest in counts if count]


def clean(graph: RawGraph, *, largest_component: bool = False) -> tuple[RawGraph, CleaningReport]:
    """Drop self-loops and edges of weight 0, merge duplicates, write undirected edges both ways, and count all that.

    A duplicate edge counts once without weights; weights add up, edge features are averaged. In an undirected graph
    the edge i-j may be listed as (i, j), as (j, i) or as both. With weights, a list that holds every edge both ways
    with equal weights is taken as it stands; in any other list the weights of (i, j) and (j, i) add up.

    Args:
        graph: As read from a file; it is checked first.
        largest_component: Whether to keep only the (weakly) largest connected component, in the order of the nodes.

    Returns:
        The graph, with `edge_index` sorted by source, then target, as PyG's `coalesce` does; and the counts.
    """
    graph.check()
    loops = graph.edge_index[0] == graph.edge_index[1]
    zeros = ~loops & (False if graph.edge_weight is None else graph.edge_weight == 0)
    graph = _take_edges(graph, ~(loops | zeros))
    before = graph.edge_index.shape[1]
    graph = _merge_duplicates(graph)
    duplicates = before - graph.edge_index.shape[1]
    graph, opposite = (graph, 0) if graph.directed else _make_symmetric(graph)
    graph, outside = _component(replace(graph, features=_canonical(graph.features)), largest_component)
    row_sizes = np.diff(graph.features.indptr) if sparse.issparse(graph.features) else graph.features.any(axis=1)
    return graph, CleaningReport(
        self_loops=int(loops.sum()),
        zero_weight_edges=int(zeros.sum()),
        duplicate_edges=duplicates,
        duplicate_entries=graph.duplicate_entries,
        opposite_edges=opposite,
        outside_component=outside,
        component_taken=largest_component,
        without_features=int((row_sizes == 0).sum()),
    )


def clean_and_warn(graph: RawGraph, *, largest_component: bool = False) -> RawGraph:
    """:func:`clean` a graph and log one warning with what was cleaned."""
    graph, report = clean(graph, largest_component=largest_component)
    if sentences := report.sentences():
        _log.warning("%s: %s.", graph.name, "; ".join(sentences))
    return graph


def _take_edges(graph: RawGraph, chosen: NDArray[Any]) -> RawGraph:
    """The edges that a mask or an array of numbers chooses."""
    return replace(
        graph,
        edge_index=graph.edge_index[:, chosen],
        edge_weight=None if graph.edge_weight is None else graph.edge_weight[chosen],
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[chosen],
    )


def _merge_duplicates(graph: RawGraph) -> RawGraph:
    """Every edge once, sorted by source, then target."""
    nodes = graph.num_nodes
    keys = graph.edge_index[0] * nodes + graph.edge_index[1]
    if graph.edge_weight is None and graph.edge_attr is None:
        return replace(graph, edge_index=np.stack(np.divmod(sorted_unique(keys), nodes)))
    unique, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    weight, attr = graph.edge_weight, graph.edge_attr
    total = sparse.csr_matrix((np.ones(len(keys)), (group, np.arange(len(keys)))), shape=(len(unique), len(keys)))
    return replace(
        graph,
        edge_index=np.stack(np.divmod(unique, nodes)),
        edge_weight=None if weight is None else (total @ weight).astype(np.float32),
        edge_attr=None if attr is None else (total @ attr / sizes[:, None]).astype(np.float32),
    )


def _make_symmetric(graph: RawGraph) -> tuple[RawGraph, int]:
    """The symmetric graph of one without duplicates, and how many pairs had two unlike weights."""
    edges = graph.edge_index.shape[1]
    both_ways = _take_edges(graph, np.tile(np.arange(edges), 2))
    both_ways.edge_index[:, edges:] = graph.edge_index[::-1]
    symmetric = _merge_duplicates(both_ways)
    if graph.edge_weight is None or symmetric.edge_weight is None:
        return symmetric, 0
    pairs = symmetric.edge_index.shape[1] // 2
    opposite = edges - pairs
    # Sums of two equal weights are exactly twice each of them.
    if opposite == pairs and np.array_equal(symmetric.edge_weight, 2 * graph.edge_weight):
        return replace(symmetric, edge_weight=graph.edge_weight), 0
    return symmetric, opposite


def _canonical(features: Features) -> Features:
    """Sparse features with sorted columns, each entry once, and no zeros, which torch's CSR tensors rely on."""
    if not sparse.issparse(features) or (features.has_canonical_format and features.data.all()):
        return features
    features = features.copy()
    features.sum_duplicates()
    features.eliminate_zeros()
    return features


def _component(graph: RawGraph, take: bool) -> tuple[RawGraph, int]:
    """The graph, cut to its largest component if asked for, and how many nodes lie outside of that component."""
    nodes = graph.num_nodes
    ones = np.ones(graph.edge_index.shape[1], dtype=np.int8)
    adjacency = sparse.csr_matrix((ones, tuple(graph.edge_index)), shape=(nodes, nodes))
    _, component = connected_components(adjacency, directed=False)
    inside = component == np.bincount(component).argmax()
    outside = int(nodes - inside.sum())
    if outside == 0 or not take:
        return graph, outside
    graph = _take_edges(graph, inside[graph.edge_index[0]])
    return replace(
        graph,
        edge_index=(np.cumsum(inside) - 1)[graph.edge_index],
        features=graph.features[inside],
        labels=graph.labels[inside],
        node_names=[name for name, kept in zip(graph.node_names, inside, strict=True) if kept],
        split_codes=None if graph.split_codes is None else graph.split_codes[inside],
        described=None if graph.described is None else graph.described[inside],
    ), outside
