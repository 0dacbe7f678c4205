"""Splits that the user gives."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from cagat.data.parts import PARTS
from cagat.data.splits import Split
from cagat.data.tables.given import GivenTable
from cagat.data.tables.labels import part_vector
from cagat.data.tables.layout import split_layout
from cagat.data.tables.reader import read_table
from cagat.errors import DatasetError


def split_given(data: Data, path: str | Path | None = None) -> Split:
    """Return the split that the user gave: in a file, or with the graph itself.

    Args:
        data: The graph. Without a path its `train_mask`, `val_mask` and `test_mask` are used, which `load` sets when
            the graph came with a split (a `splits` table, or a `split` column in the table of labels).
        path: A CSV, TSV or Parquet file with the columns `node` and `split` (`train`, `val`, `test` or nothing).

    Raises:
        DatasetError: There is no split, it names an unknown node, puts a node without a label into a part, or leaves
            training or test empty.
    """
    given = _from_masks(data) if path is None else _from_file(data, Path(path))
    for part, nodes in given._asdict().items():
        if len(nodes) == 0 and part != "val":
            raise DatasetError(f"The given split has no {part} nodes. Name some.")
        unlabelled = nodes[data.y[nodes] < 0]
        if len(unlabelled):
            raise DatasetError(
                f"The given split puts node {_node_names(data)[int(unlabelled[0])]!r} into {part}, but it has no label "
                f"({len(unlabelled)} such nodes). Give labels or take the nodes out of the split."
            )
    return given


def _from_masks(data: Data) -> Split:
    masks = [getattr(data, f"{part}_mask", None) for part in PARTS]
    if all(mask is None for mask in masks):
        raise DatasetError("The graph came without a split. Give a file of splits, or draw one with cagat.data.split.")
    empty = torch.zeros(int(data.num_nodes), dtype=torch.bool)
    return Split(*((empty if mask is None else mask).nonzero().flatten() for mask in masks))


def _from_file(data: Data, path: Path) -> Split:
    table, layout = read_table(path, split_layout)
    given = GivenTable(table, layout, str(path))
    number = {name: node for node, name in enumerate(_node_names(data))}
    names, rows = given.codes(0)
    if unknown := [name for name in names if name not in number]:
        raise DatasetError(f"{path}: node {unknown[0]!r} is not in the graph ({len(unknown)} such nodes). Remove it.")
    if len(names) != len(rows):
        raise DatasetError(f"{path}: {len(rows) - len(names)} nodes have more than one row. Keep one a node.")
    nodes = torch.tensor([number[name] for name in names])[torch.from_numpy(rows)]
    parts = part_vector(given, 1, nodes.numpy(), int(data.num_nodes))
    return Split(*(torch.from_numpy((parts == part).nonzero()[0]) for part in (1, 2, 3)))


def _node_names(data: Data) -> list[str]:
    """The names of the nodes; in a `Data` that is not ours, their numbers."""
    return getattr(data, "node_names", None) or [str(node) for node in range(int(data.num_nodes))]
