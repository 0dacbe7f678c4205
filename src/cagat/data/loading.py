"""Load any graph by name or path, and save one."""

import difflib
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from torch_geometric.data import Data

from cagat.data.fetching import EMBEDDED, fetch
from cagat.data.noise import Noise
from cagat.data.npz import read_npz
from cagat.data.prepare import prepare
from cagat.data.published import PUBLISHED
from cagat.data.pyg import from_data, to_data
from cagat.data.raw_graph import RawGraph
from cagat.data.saving import write_graph
from cagat.data.sources import Progress
from cagat.data.synthetic import Synthetic
from cagat.data.tables import read_folder
from cagat.data.tensors import read_safetensors
from cagat.data.tidy import tidy
from cagat.errors import DatasetError


def load(
    name_or_path: str | Path,
    data_dir: str | Path | None = None,
    *,
    sparse: bool = False,
    directed: bool | None = None,
    largest_component: bool | None = None,
    progress: Progress | None = None,
) -> Data:
    """Load a graph as a PyG `Data`.

    Args:
        name_or_path: A name of the catalogue (`cora`, `citeseer`, `cora_ml`, `pubmed`, `digits`, `karate`,
            `synthetic:nodes=1000,...`), or a directory of tables, an `.npz` or a `.safetensors` file. A name wins over
            a file of the same name; write `./cora` for the file. `cora:added=50,dropped=20,seed=0` is Cora with that
            percentage of its edges added and dropped at random; likewise the paper's other three.
        data_dir: Where the published graphs are looked for and put; see :func:`cagat.data.fetch`.
        sparse: Whether `x` is a sparse CSR tensor instead of a dense one.
        directed: Whether to keep the direction of edges; `None` for what the file says, which is no unless it was
            converted with `--directed`.
        largest_component: Whether to take only the largest connected component; `None` for yes with the paper's graphs
            and no with any other.
        progress: Called while a download goes on.

    Returns:
        `x` (nodes, features) float32, as in the file, not scaled; `edge_index` (2, edges) without self-loops, sorted by
        source, then target, undirected edges both ways; `y` (nodes) int64, -1 for unlabelled; if there are any,
        `edge_weight`, `edge_attr`, `train_mask`, `val_mask` and `test_mask`; and `name`, `source`, `sha256`,
        `directed`, `node_names`, `class_names` and `feature_names`.
    """
    name = str(name_or_path)
    published = name.partition(":")[0]
    if published in PUBLISHED:
        if directed:
            raise DatasetError(f"{published} is used undirected, as in the paper. Leave directed out.")
        noise = Noise.parse(name)
        path = fetch(published, data_dir, progress=progress)
        graph = read_npz(path, name=name)
        if path.parent == EMBEDDED:
            graph = replace(graph, source="embedded in the package")
        # What is strange about the paper's graphs is known, and taking their largest component is the protocol.
        graph, _ = tidy(graph, largest_component=largest_component is not False)
        return to_data(noise.applied(graph) if noise != Noise() else graph, sparse_features=sparse)
    make = _maker(name)
    graph = make() if make else _read(Path(name))
    return prepare(graph, sparse=sparse, directed=directed, largest_component=bool(largest_component))


def save(data: Data, path: str | Path) -> None:
    """Save a graph to a `.safetensors` or `.npz` file, neither of which can hold anything that is executed.

    What :func:`load` gives comes back the same: `x`, `edge_index`, `y`, weights, edge features, masks and names. Other
    attributes are not saved, and that is said.
    """
    if not isinstance(path, (str, PathLike)):
        raise DatasetError(f"A graph is saved to a path, not to {path!r:.80}. Give one that ends in .npz.")
    write_graph(Path(path), from_data(data))


def is_name(name_or_path: str) -> bool:
    """Whether :func:`load` takes this for the name of a graph, and not for a path."""
    return name_or_path.partition(":")[0] in (*PUBLISHED, "digits", "karate", "synthetic")


def _maker(name: str) -> Callable[[], RawGraph] | None:
    """The function that makes the graph of this name on the spot, if there is one."""
    if name == "karate":
        from cagat.data.karate import karate

        return karate
    if name == "digits":
        from cagat.data.digits import digits

        return digits
    return Synthetic.parse(name).graph if name.partition(":")[0] == "synthetic" else None


def _read(path: Path) -> RawGraph:
    try:
        path.exists()
    except (OSError, ValueError) as error:
        # Some names no file can have, since they are too long or hold a null character.
        raise DatasetError(
            f"There is no data set and no file called {str(path)!r:.80} ({getattr(error, 'strerror', None) or error}). "
            "Give a shorter name or path."
        ) from error
    if path.is_dir():
        return read_folder(path)
    if path.is_file() and path.suffix == ".npz":
        return read_npz(path)
    if path.is_file() and path.suffix == ".safetensors":
        return read_safetensors(path)
    if path.exists():
        raise DatasetError(
            f"{path}: a graph is a directory with an edges file, an .npz or a .safetensors. "
            "To join single tables, use: cagat data convert --edges EDGES --features FEATURES --labels LABELS OUT.npz"
        )
    names = [*PUBLISHED, "digits", "karate", "synthetic"]
    near = difflib.get_close_matches(str(path), names, n=1)
    raise DatasetError(
        f"There is no data set and no file called {str(path)!r}."
        + (f" Did you mean {near[0]}?" if near else f" Choose one of {', '.join(names)}, or give a path.")
    )
