"""Graphs from pandas frames."""

from typing import Any

import pyarrow as pa
from torch_geometric.data import Data

from cagat.data.prepare import prepare
from cagat.data.tables.given import GivenTable
from cagat.data.tables.graph import graph_from_tables
from cagat.data.tables.layout import edge_layout, feature_layout, label_layout, split_layout
from cagat.data.tables.reader import FindLayout
from cagat.errors import DatasetError


def from_frames(
    edges: Any,
    features: Any = None,
    labels: Any = None,
    splits: Any = None,
    *,
    directed: bool = False,
    largest_component: bool = False,
    sparse: bool = False,
) -> Data:
    """Turn pandas frames into a `Data`; their columns are those of the files that `docs/data.md` describes.

    Args:
        edges: `source`, `target`, perhaps `weight`, and further columns as edge features.
        features: `node` and one column a feature; or `node`, `feature` and `value`.
        labels: `node`, `label` and perhaps `split`.
        splits: `node` and `split`.
        directed: Whether to keep directions.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
    """
    graph = graph_from_tables(
        _given(edges, "edges", edge_layout),
        None if features is None else _given(features, "features", feature_layout),
        None if labels is None else _given(labels, "labels", label_layout),
        None if splits is None else _given(splits, "splits", split_layout),
        directed=directed,
        source="pandas frames",
    )
    return prepare(graph, sparse=sparse, largest_component=largest_component)


def _given(frame: Any, what: str, find_layout: FindLayout) -> GivenTable:
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError) as error:
        raise DatasetError(f"{what}: a pandas frame with columns of one type each is expected ({error}).") from error
    return GivenTable(table, find_layout(what, table.column_names), what)
