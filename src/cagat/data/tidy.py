"""From a graph as a file holds it to the graph that is computed on."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cagat.data.distinct import distinct
from cagat.data.oddities import SMALL_CLASS, Oddities
from cagat.data.raw_graph import Features, RawGraph


def tidy(graph: RawGraph, *, largest_component: bool = False) -> tuple[RawGraph, Oddities]:
    """Drop self-loops and edges without weight, merge duplicates, write undirected edges both ways, count oddities.

    A duplicate edge counts once without weights; weights add up, edge features are averaged. In an undirected graph
    the edge i-j may be listed as (i, j), as (j, i) or as both. With weights, a list that holds every edge both ways
    with equal weights is taken as it stands; in any other list the weights of (i, j) and (j, i) add up.

    Args:
        graph: As read from a file; it is checked first.
        largest_component: Whether to keep only the (weakly) largest connected component, in the order of the nodes.

    Returns:
        The graph, with `edge_index` sorted by source, then target, as PyG's `coalesce` does; and what was strange.
    """
    graph.check()
    graph, loops = _without(graph, graph.edge_index[0] == graph.edge_index[1])
    weightless = 0
    if graph.edge_weight is not None:
        graph, weightless = _without(graph, graph.edge_weight == 0)
    before = graph.edge_index.shape[1]
    graph = _merged(graph)
    duplicates = before - graph.edge_index.shape[1]
    opposite = 0
    if not graph.directed:
        graph, opposite = _both_ways(graph)
    graph, outside = _component(replace(graph, features=_canonical(graph.features)), largest_component)
    return graph, Oddities(
        self_loops=loops,
        weightless_edges=weightless,
        duplicate_edges=duplicates,
        opposite_edges=opposite,
        outside_component=outside,
        component_taken=largest_component,
        without_features=_rows_without_features(graph),
        small_classes=_small_classes(graph),
    )


def _without(graph: RawGraph, dropped: NDArray[np.bool_]) -> tuple[RawGraph, int]:
    """The graph without some of its edges, and how many they were."""
    count = int(dropped.sum())
    return (_take_edges(graph, ~dropped) if count else graph), count


def _take_edges(graph: RawGraph, chosen: NDArray[np.bool_]) -> RawGraph:
    return replace(
        graph,
        edge_index=graph.edge_index[:, chosen],
        edge_weight=None if graph.edge_weight is None else graph.edge_weight[chosen],
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[chosen],
    )


def _merged(graph: RawGraph) -> RawGraph:
    """Every edge once, sorted by source, then target."""
    nodes = graph.num_nodes
    keys = graph.edge_index[0] * nodes + graph.edge_index[1]
    if graph.edge_weight is None and graph.edge_attr is None:
        return replace(graph, edge_index=np.stack(np.divmod(distinct(keys), nodes)))
    unique, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    weight, attr = graph.edge_weight, graph.edge_attr
    if weight is not None:
        weight = np.bincount(group, weights=weight, minlength=len(unique)).astype(np.float32)
    if attr is not None:
        columns = [np.bincount(group, weights=column, minlength=len(unique)) / sizes for column in attr.T]
        attr = np.stack(columns, axis=1).astype(np.float32) if columns else attr[: len(unique)]
    return replace(graph, edge_index=np.stack(np.divmod(unique, nodes)), edge_weight=weight, edge_attr=attr)


def _both_ways(graph: RawGraph) -> tuple[RawGraph, int]:
    """The symmetric graph of a merged one, and how many pairs had two unlike weights."""
    (source, target), weight, attr = graph.edge_index, graph.edge_weight, graph.edge_attr
    there_and_back = replace(
        graph,
        edge_index=np.concatenate([graph.edge_index, graph.edge_index[::-1]], axis=1),
        edge_weight=None if weight is None else np.concatenate([weight, weight]),
        edge_attr=None if attr is None else np.concatenate([attr, attr]),
    )
    symmetric = _merged(there_and_back)
    if weight is None or symmetric.edge_weight is None:
        return symmetric, 0
    pairs = symmetric.edge_index.shape[1] // 2
    opposite = graph.edge_index.shape[1] - pairs
    shape = (graph.num_nodes, graph.num_nodes)
    matrix = sparse.csr_matrix((weight, (source, target)), shape=shape)
    if opposite == pairs and (matrix != matrix.T).nnz == 0:
        return replace(symmetric, edge_weight=symmetric.edge_weight / np.float32(2)), 0
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
    adjacency = sparse.csr_matrix((ones, (graph.edge_index[0], graph.edge_index[1])), shape=(nodes, nodes))
    _, component = connected_components(adjacency, directed=False)
    inside = component == np.bincount(component).argmax()
    outside = int(nodes - inside.sum())
    if outside == 0 or not take:
        return graph, outside
    number = np.cumsum(inside) - 1
    graph = _take_edges(graph, inside[graph.edge_index[0]])
    return replace(
        graph,
        edge_index=number[graph.edge_index],
        features=graph.features[inside],
        labels=graph.labels[inside],
        node_names=[name for name, kept in zip(graph.node_names, inside, strict=True) if kept],
        parts=None if graph.parts is None else graph.parts[inside],
    ), outside


def _rows_without_features(graph: RawGraph) -> int:
    if sparse.issparse(graph.features):
        return int((np.diff(graph.features.indptr) == 0).sum())
    return int((~graph.features.any(axis=1)).sum())


def _small_classes(graph: RawGraph) -> tuple[tuple[str, int], ...]:
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=len(graph.class_names))
    named = zip(graph.class_names, sizes.tolist(), strict=True)
    return tuple((name, size) for name, size in named if size <= SMALL_CLASS)
