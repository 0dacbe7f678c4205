"""Join the tables of a graph in one file."""

from pathlib import Path

from cagat.data.prepare import tidied
from cagat.data.raw_graph import RawGraph
from cagat.data.saving import check_suffix, write_graph
from cagat.data.tables import read_tables


def convert(
    out: str | Path,
    edges: str | Path,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    splits: str | Path | None = None,
    *,
    directed: bool = False,
    largest_component: bool = False,
) -> RawGraph:
    """Read tables, tidy the graph, write it to `out` (`.npz` or `.safetensors`) and return it.

    Args:
        out: Replaced if it is there, once the new file is complete.
        edges: A CSV, TSV or Parquet file, as are the following; see docs/data.md for their columns.
        features: One row a node, or one row for each feature that a node has.
        labels: Nodes that are missing here, or whose label is, are unlabelled.
        splits: Which node is in which part.
        directed: Whether to keep the direction of edges.
        largest_component: Whether to take only the largest component.
    """
    check_suffix(Path(out))
    paths = [Path(path) if path is not None else None for path in (features, labels, splits)]
    graph = read_tables(Path(edges), *paths, directed=directed, name=Path(out).stem)
    graph = tidied(graph, largest_component=largest_component)
    write_graph(Path(out), graph)
    return graph
