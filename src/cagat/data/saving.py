"""Write a graph to a file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cagat.data.npz import write_npz
from cagat.data.raw_graph import RawGraph
from cagat.data.tensors import write_safetensors
from cagat.errors import DatasetError

_WRITERS: dict[str, Callable[[Path, RawGraph], None]] = {
    ".npz": partial(write_npz, seal=True),
    ".safetensors": write_safetensors,
}


def check_suffix(path: Path) -> None:
    """Raise :class:`DatasetError` unless the ending of the path is one that graphs are written with."""
    if path.suffix not in _WRITERS:
        raise DatasetError(f"{path}: a graph is written to a file that ends in {' or '.join(_WRITERS)}. Rename it.")


def write_graph(path: Path, graph: RawGraph) -> None:
    """Write a graph in the form that the ending of the path names, with a digest by which damage is noticed."""
    check_suffix(path)
    _WRITERS[path.suffix](path, graph)
