"""Graphs whose tables are files."""

import hashlib
from pathlib import Path

from cagat.data.file_sha256 import file_sha256
from cagat.data.raw_graph import RawGraph
from cagat.data.tables.given import GivenTable
from cagat.data.tables.graph import graph_from_tables
from cagat.data.tables.layout import edge_layout, feature_layout, label_layout, split_layout
from cagat.data.tables.reader import SUFFIXES, FindLayout, read_table
from cagat.errors import DatasetError


def read_tables(
    edges: Path,
    features: Path | None = None,
    labels: Path | None = None,
    splits: Path | None = None,
    *,
    directed: bool = False,
    name: str | None = None,
) -> RawGraph:
    """Read a graph from CSV, TSV or Parquet files; see docs/data.md for their columns.

    The sha256 of a graph in several files is that of their sums, as `sha256sum EDGES FEATURES ... | sha256sum` gives it
    when run where they are.
    """
    tables = (
        _read(edges, edge_layout),
        _read(features, feature_layout) if features else None,
        _read(labels, label_layout) if labels else None,
        _read(splits, split_layout) if splits else None,
    )
    given = [path for path in (edges, features, labels, splits) if path is not None]
    sums = "".join(f"{file_sha256(path)}  {path.name}\n" for path in given)
    return graph_from_tables(
        *tables,
        directed=directed,
        name=name or edges.stem,
        source="files " + ", ".join(str(path) for path in given),
        sha256=hashlib.sha256(sums.encode()).hexdigest() if len(given) > 1 else file_sha256(edges),
    )


def read_folder(folder: Path, *, directed: bool = False) -> RawGraph:
    """Read a graph from the `edges` file of a directory, and its `features`, `labels` and `splits` if there are."""
    found = {table: _find(folder, table) for table in ("edges", "features", "labels", "splits")}
    edges = found.pop("edges")
    if edges is None:
        raise DatasetError(
            f"{folder}: there is no edges file. A directory of a graph holds edges{SUFFIXES[0]} (or "
            f"{', '.join(SUFFIXES[1:])}) and, if there are, features, labels and splits with one of these endings."
        )
    return read_tables(edges, **found, directed=directed, name=folder.resolve().name)


def _find(folder: Path, table: str) -> Path | None:
    paths = [path for suffix in SUFFIXES if (path := folder / f"{table}{suffix}").is_file()]
    if len(paths) > 1:
        raise DatasetError(f"{folder}: there are {' and '.join(path.name for path in paths)}. Keep one of them.")
    return paths[0] if paths else None


def _read(path: Path, find_layout: FindLayout) -> GivenTable:
    table, layout = read_table(path, find_layout)
    return GivenTable(table, layout, str(path))
