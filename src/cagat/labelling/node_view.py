"""What a person sees of a node: its columns as they stand in the table, or the features that are not zero."""

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from cagat.data.table_files import folder_files, read_table

LONGEST_TEXT = 4000
"""Characters of a cell that are shown."""

MOST_FEATURES = 60
"""Features that are named."""


class NodeColumns:
    """Names and values of what describes each node, as texts.

    Args:
        graph: The graph.
        folder: Its directory of tables, if it comes from one; their cells are shown as they are.
    """

    def __init__(self, graph: Data, folder: Path | None = None) -> None:
        self._graph, self._table, self._row = graph, None, dict[str, int]()
        paths = {} if folder is None else folder_files(folder)
        if "features" in paths:
            table = read_table(paths["features"], "features", labelled="labels" not in paths)
            # Rows of a table of node, feature and value say one thing each; the matrix has them together.
            if len(table.columns.names) == 1:
                names, codes = table.codes(0)
                self._table, self._row = table, {names[code]: row for row, code in enumerate(codes.tolist())}

    def __call__(self, node: int) -> list[dict[str, str]]:
        """Of a node: name and value of each column that is not empty."""
        if self._table is not None:
            row = self._row.get(self._graph.node_names[node])
            columns = () if row is None else self._table.columns.values
            cells = ((column, self._table.data[column][row].as_py()) for column in columns)
            return [{"name": column, "value": shown(cell)} for column, cell in cells if cell is not None]
        if self._graph.get("structural", False):
            return []
        features, values = _not_zero(self._graph.x, node)
        named = list(self._graph.feature_names or ())
        names = [named[feature] if named else str(feature) for feature in features]
        if len(set(values)) == 1:  # Words that are there, in most cases.
            more = f" and {len(names) - MOST_FEATURES} more" * (len(names) > MOST_FEATURES)
            what = f"features that are {values[0]:g}"
            return [{"name": what, "value": shown(", ".join(names[:MOST_FEATURES]) + more)}]
        largest = sorted(range(len(values)), key=lambda index: -abs(values[index]))[:MOST_FEATURES]
        return [{"name": names[index], "value": f"{values[index]:.4g}"} for index in largest]


def shown(cell: Any) -> str:
    """A cell as text of a bounded length."""
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."


def _not_zero(x: torch.Tensor, node: int) -> tuple[list[int], list[float]]:
    if x.layout is torch.strided:
        found = x[node].nonzero().flatten()
        return found.tolist(), x[node][found].tolist()
    start, end = x.crow_indices()[node : node + 2].tolist()
    return x.col_indices()[start:end].tolist(), x.values()[start:end].tolist()
