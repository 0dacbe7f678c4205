"""One function that loads any graph by name or path."""

from pathlib import Path

from torch_geometric.data import Data

from cagat.data.npz import read_npz
from cagat.data.pyg import to_data
from cagat.data.tidy import tidy
from cagat.errors import DatasetError

_EMBEDDED = Path(__file__).parent / "embedded"


def load(name: str, *, sparse: bool = False) -> Data:
    """Load a graph as a PyG `Data`.

    Args:
        name: A name of the catalogue.
        sparse: Whether `x` is a sparse CSR tensor instead of a dense one.
    """
    if name != "cora":
        raise DatasetError(f"There is no data set {name!r}. Choose one of: cora.")
    graph, _ = tidy(read_npz(_EMBEDDED / "cora.npz", name="cora"), largest_component=True)
    return to_data(graph, sparse_features=sparse)
