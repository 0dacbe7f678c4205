"""Graphs from networkx."""

from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from cagat.data.numbers import as_array, as_float32
from cagat.data.prepare import prepare
from cagat.data.raw_graph import Features, RawGraph, one_hot
from cagat.data.tables.columns import in_order
from cagat.errors import DatasetError


def from_networkx(
    graph: networkx.Graph,
    *,
    features: str | None = "x",
    label: str | None = "label",
    weight: str | None = "weight",
    directed: bool | None = None,
    largest_component: bool = False,
    sparse: bool = False,
) -> Data:
    """Turn a networkx graph into a `Data`; nodes keep their order, and `str(node)` is a node's name.

    Args:
        graph: Directed or not; parallel edges are merged.
        features: The node attribute that holds a list of numbers; a node without it has zeros. If no node has it,
            every node is a feature of its own.
        label: The node attribute that holds the class; a node without it, or with `None`, is unlabelled.
        weight: The edge attribute that holds the weight; if some edges have it, the others weigh 1.
        directed: Whether to keep directions; `None` for what the graph is.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
    """
    if not isinstance(graph, networkx.Graph):
        raise DatasetError(
            f"The graph must be one of networkx, but is a {type(graph).__name__}. Make it with networkx.Graph(edges)."
        )
    number = {node: place for place, node in enumerate(graph)}
    edges = [(number[source], number[target]) for source, target in graph.edges()]
    classes, labels = _named_labels([graph.nodes[node].get(label) if label else None for node in graph])
    raw = RawGraph(
        edge_index=np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        features=_stacked({node: graph.nodes[node].get(features) if features else None for node in graph}),
        labels=labels,
        node_names=[str(node) for node in graph],
        class_names=classes,
        edge_weight=_weights(list(graph.edges(data=weight))) if weight else None,
        directed=graph.is_directed(),
        name=graph.name or "graph",
        source="a networkx graph",
    )
    return prepare(raw, sparse=sparse, directed=directed, largest_component=largest_component)


def _weights(edges: list[tuple[Any, Any, Any]]) -> NDArray[np.float32] | None:
    """The weights of edges, if any has one."""
    if all(weight is None for _, _, weight in edges):
        return None
    return as_float32("edge_weight", np.array([_weight(*edge) for edge in edges]))


def _weight(source: Any, target: Any, weight: Any) -> float:
    try:
        return 1.0 if weight is None else float(weight)
    except (TypeError, ValueError, OverflowError) as error:
        raise DatasetError(
            f"The edge from {source!r} to {target!r} has the weight {weight!r:.80}, which is no number. Give it one, "
            "or pass weight=None to leave weights out."
        ) from error


def _stacked(features: dict[Any, Any]) -> Features:
    for node, row in features.items():
        if row is not None and not hasattr(row, "__len__"):
            raise DatasetError(
                f"Node {node!r} has the features {row!r:.80}, which are no list of numbers. Write [{row!r:.80}] for "
                "one feature."
            )
    rows = list(features.values())
    lengths = {len(row) for row in rows if row is not None}
    if not lengths:
        return one_hot(len(rows))
    if len(lengths) > 1:
        raise DatasetError(f"Nodes have features of different lengths: {', '.join(map(str, sorted(lengths)))}.")
    zeros = np.zeros(lengths.pop(), dtype=np.float32)
    return as_float32("features", as_array("features", [zeros if row is None else row for row in rows]), 2)


def _named_labels(values: list[Any]) -> tuple[list[str], NDArray[np.int64]]:
    classes = in_order(list({str(value) for value in values if value is not None}))
    number = {name: place for place, name in enumerate(classes)}
    return classes, np.array([-1 if value is None else number[str(value)] for value in values], dtype=np.int64)
