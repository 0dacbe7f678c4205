"""A graph from tables of edges, features, labels and splits."""

import logging

import numpy as np
from numpy.typing import NDArray

from cagat.data.raw_graph import RawGraph, one_hot
from cagat.data.tables.features import feature_matrix
from cagat.data.tables.given import GivenTable
from cagat.data.tables.labels import label_vector, part_vector
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)


class _Nodes:
    """Numbers for names, given in the order in which the names come."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}

    def of(self, given: GivenTable, place: int = 0, *, once: bool = False) -> NDArray[np.int64]:
        """The node number of every row of a table."""
        names, rows = given.codes(place)
        if "" in names:
            raise DatasetError(f"{given.what}: a node has an empty name. Fill it in or remove the row.")
        if once and len(names) != len(rows):
            twice = names[int(np.bincount(rows).argmax())]
            raise DatasetError(f"{given.what}: node {twice!r} has more than one row. Keep one.")
        numbers = np.array([self.number.setdefault(name, len(self.number)) for name in names], dtype=np.int64)
        return numbers[rows]


def graph_from_tables(
    edges: GivenTable,
    features: GivenTable | None = None,
    labels: GivenTable | None = None,
    splits: GivenTable | None = None,
    *,
    directed: bool = False,
    name: str = "graph",
    source: str = "tables",
    sha256: str = "",
) -> RawGraph:
    """Assemble a graph.

    Nodes are numbered in the order of the features table, then come those only in labels, splits and edges, in this
    order. Classes and sparse features are sorted: by value if all their names are whole numbers, else as texts.
    """
    for given in (edges, features, labels, splits):
        if given is not None and given.layout.ignored:
            _log.warning("%s: columns not used: %s", given.what, ", ".join(given.layout.ignored))
    nodes = _Nodes()
    dense = features is not None and len(features.layout.texts) == 1
    feature_rows = nodes.of(features, once=dense) if features else np.empty(0, dtype=np.int64)
    label_rows = nodes.of(labels, once=True) if labels else np.empty(0, dtype=np.int64)
    split_rows = nodes.of(splits, once=True) if splits else np.empty(0, dtype=np.int64)
    edge_index = np.stack([nodes.of(edges, 0), nodes.of(edges, 1)])
    count = len(nodes.number)
    matrix, feature_names = feature_matrix(features, feature_rows, count) if features else (one_hot(count), [])
    class_names, node_labels = label_vector(labels, label_rows, count) if labels else ([], np.full(count, -1))
    extra = [column for column in edges.layout.numbers if column.lower() != "weight"]
    weights = [column for column in edges.layout.numbers if column.lower() == "weight"]
    return RawGraph(
        edge_index=edge_index,
        features=matrix,
        labels=node_labels,
        node_names=list(nodes.number),
        class_names=class_names,
        feature_names=feature_names,
        edge_weight=edges.numbers(weights[0]) if weights else None,
        edge_attr=np.stack([edges.numbers(column) for column in extra], axis=1) if extra else None,
        parts=_parts(labels, label_rows, splits, split_rows, count),
        directed=directed,
        name=name,
        source=source,
        sha256=sha256,
    )


def _parts(
    labels: GivenTable | None,
    label_rows: NDArray[np.int64],
    splits: GivenTable | None,
    split_rows: NDArray[np.int64],
    count: int,
) -> NDArray[np.int64] | None:
    """The split that the table of splits or a third text column of the labels gives, if one of them does."""
    in_labels = labels is not None and len(labels.layout.texts) == 3
    if splits is not None and in_labels:
        raise DatasetError(f"{splits.what}: there is a split in the table of labels too. Keep one of the two.")
    if splits is not None:
        return part_vector(splits, 1, split_rows, count)
    return part_vector(labels, 2, label_rows, count) if labels is not None and in_labels else None
