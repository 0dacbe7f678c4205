"""Load any graph by name or path, and write one to a file."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cagat.data.cleaning import clean, clean_and_warn
from cagat.data.columns import KINDS, TableOptions
from cagat.data.graph import RawGraph, sorted_unique
from cagat.data.graph_files import read_npz, read_safetensors, write_npz, write_safetensors
from cagat.data.published import EMBEDDED, PUBLISHED, Progress, fetch
from cagat.data.synthetic import Noise, Synthetic, breast_cancer, digits, karate
from cagat.data.table_files import read_folder, read_tables
from cagat.errors import DatasetError, nearest

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from cagat.data.encoding import TableEncoder

_MADE = {"digits": digits, "breast_cancer": breast_cancer, "karate": karate}
_NAMES = (*PUBLISHED, *_MADE, "synthetic")
GRAPH_FILE = "graph.json"
"""What a directory holds that is a graph in parts."""
_FORMATS = {".npz": (read_npz, write_npz), ".safetensors": (read_safetensors, write_safetensors)}


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    *,
    sparse: bool = False,
    directed: bool | None = None,
    largest_component: bool | None = None,
    names: Mapping[str, str | None] | None = None,
    columns: str | Path | Mapping[str, str] | None = None,
    encoder: "TableEncoder | None" = None,
    progress: Progress | None = None,
) -> "Data":
    """Load a graph as a PyG `Data`.

    Args:
        name_or_path: A name of the catalogue (`cora`, `citeseer`, `cora_ml`, `pubmed`, `digits`, `breast_cancer`,
            `karate`, `synthetic:nodes=1000,...`), or a directory of tables, an `.npz` or a `.safetensors` file. A name
            wins over a file of the same name; write `./cora` for the file. `cora:added=50,dropped=20,seed=0` is Cora
            with that percentage of its edges added and dropped at random; likewise the paper's other three.
        data_dir: Where the published graphs are looked for and put; see :func:`cagat.data.fetch`.
        sparse: Whether `x` is a sparse CSR tensor instead of a dense one. PyG's `subgraph` needs a dense `x`.
        directed: Whether to keep the direction of edges; `None` for what the file says, which is no unless it was
            converted with `--directed`.
        largest_component: Whether to take only the largest connected component; `None` for yes with the paper's graphs
            and no with any other.
        names: In tables, what the columns of the roles `source`, `target`, `node` and `label` are called.
        columns: What columns of a table of features hold (`number`, `boolean`, `category`, `date`, `text` or `drop`),
            by name, or the path of a YAML file that says so; by default the `columns.yaml` of the directory.
        encoder: Encodes a table of features as it did another one before.
        progress: Called while a download goes on.

    Returns:
        `x` (nodes, features) float32, as in the file, not scaled; `edge_index` (2, edges) without self-loops, sorted by
        source, then target, undirected edges both ways; `y` (nodes) int64, -1 for unlabelled; if there are any,
        `edge_weight`, `edge_attr`, `train_mask`, `val_mask` and `test_mask`; and `name`, `source`, `sha256`,
        `directed`, `node_names`, `class_names` and `feature_names`; `encoder`, if a table of mixed columns was encoded;
        and `described`, if some nodes have no row in the table of features.
    """
    from cagat.data.converters import prepare, to_data

    name = str(name_or_path)
    kind = name.partition(":")[0]
    if kind not in PUBLISHED:
        made = _MADE.get(name)
        options = TableOptions.of(names, columns, encoder)
        graph = made() if made else Synthetic.parse(name).graph() if kind == "synthetic" else _read(Path(name), options)
        return prepare(graph, sparse=sparse, directed=directed, largest_component=bool(largest_component))
    if directed:
        raise DatasetError(f"{kind} is used undirected, as in the paper. Leave directed out.")
    noise = Noise.parse(name)
    path = fetch(kind, data_dir, progress=progress)
    graph = read_npz(path, name=name)
    if path.parent == EMBEDDED:
        graph = replace(graph, source="embedded in the package")
    # Without a warning: what the paper's graphs hold is known, and taking their largest component is the protocol.
    graph, _ = clean(graph, largest_component=largest_component is not False)
    return to_data(noise.applied(graph) if noise != Noise() else graph, sparse=sparse)


def is_name(name_or_path: str) -> bool:
    """Whether :func:`load` takes this for the name of a graph, and not for a path."""
    return name_or_path.partition(":")[0] in _NAMES


def is_parted(name_or_path: str | Path) -> bool:
    """Whether this is a directory that `cagat data partition` wrote."""
    return not is_name(str(name_or_path)) and os.path.isfile(os.path.join(name_or_path, GRAPH_FILE))


def graph_name(name_or_path: str) -> str:
    """What a graph is called, wherever it lies."""
    path = Path(name_or_path)
    return name_or_path if is_name(name_or_path) else path.stem if path.suffix in _FORMATS else path.resolve().name


def save(data: "Data", path: str | Path) -> None:
    """Save a graph to a `.safetensors` or `.npz` file, neither of which can hold anything that is executed.

    What :func:`load` gives comes back the same: `x`, `edge_index`, `y`, weights, edge features, masks and names. Other
    attributes are not saved, and a warning says so.
    """
    from cagat.data.converters import from_data

    if not isinstance(path, (str, os.PathLike)):
        raise DatasetError(f"A graph is saved to a path, not to {path!r:.80}. Give one that ends in .npz.")
    _writer(Path(path))(Path(path), from_data(data))


def convert(
    out: str | Path,
    edges: str | Path,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    splits: str | Path | None = None,
    *,
    directed: bool = False,
    largest_component: bool = False,
    names: Mapping[str, str | None] | None = None,
    columns: str | Path | Mapping[str, str] | None = None,
) -> RawGraph:
    """Read tables, clean the graph, write it to `out` (`.npz` or `.safetensors`) and return it.

    Args:
        out: Replaced if it is there, once the new file is complete.
        edges: A CSV, TSV or Parquet file, as are the following; see docs/reference/data.md for their columns.
        features: One row per node, or one row for each feature that a node has.
        labels: Nodes that are missing here, or whose label is, are unlabelled.
        splits: Which node is in which part of the split.
        directed: Whether to keep the direction of edges.
        largest_component: Whether to take only the largest component.
        names: What columns are called; see :func:`load`.
        columns: What columns of features hold; see :func:`load`. Mixed columns are written as they are encoded.
    """
    write = _writer(Path(out))
    given = zip(KINDS, (edges, features, labels, splits), strict=True)
    paths = {kind: Path(path) for kind, path in given if path is not None}
    graph = read_tables(paths, TableOptions.of(names, columns), directed=directed, name=Path(out).stem)
    graph = clean_and_warn(graph, largest_component=largest_component)
    write(Path(out), graph)
    return graph


def summarize(data: "Data") -> dict[str, Any]:
    """What `cagat data info` prints; `edges` are undirected and without loops, `sha256` is that of the file.

    Of a table of mixed columns, `columns` says what became of each.
    """
    nodes, (source, target) = int(data.num_nodes), data.edge_index.cpu().numpy()
    pairs = np.minimum(source, target) * nodes + np.maximum(source, target)
    labels = data.y.cpu().numpy()
    return {
        "name": data.name,
        "nodes": nodes,
        "edges": len(sorted_unique(pairs[source != target])),
        "features": data.x.size(1),
        "classes": len(data.class_names),
        "class_sizes": np.bincount(labels[labels >= 0], minlength=len(data.class_names)).tolist(),
        "sha256": data.sha256 or None,
        "source": data.source,
        **({"columns": data.encoder.describe()} if "encoder" in data else {}),
    }


def _writer(path: Path) -> Callable[[Path, RawGraph], None]:
    if path.suffix not in _FORMATS:
        raise DatasetError(f"{path}: a graph is written to a file that ends in {' or '.join(_FORMATS)}. Rename it.")
    return _FORMATS[path.suffix][1]


def _read(path: Path, options: TableOptions) -> RawGraph:
    if is_parted(path):
        raise DatasetError(
            f"{path}: the graph is in parts, but all of it is needed here. Give the graph that was cut; parts are for "
            "`cagat train --parallel graph` or `--out-of-core`, and then for `cagat predict` and `embed`."
        )
    # Not by the path itself, which fails on names that no file can have: very long ones, for instance.
    if os.path.isdir(path):
        return read_folder(path, options)
    if os.path.isfile(path) and path.suffix in _FORMATS:
        return _FORMATS[path.suffix][0](path)
    if os.path.exists(path):
        raise DatasetError(
            f"{path}: a graph is a directory with an edges file, an .npz or a .safetensors. "
            "To join single tables, use: cagat data convert --edges EDGES --features FEATURES --labels LABELS OUT.npz"
        )
    remedy = nearest(str(path), _NAMES)
    raise DatasetError(f"There is no data set and no file called {str(path)!r:.80}.{remedy} Or give a path.")
