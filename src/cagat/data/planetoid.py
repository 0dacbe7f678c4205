"""PubMed as Planetoid published it: files that are Python 2 pickles, but for one."""

import collections
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cagat.data.graph import RawGraph
from cagat.data.validation import as_csr, csr_arrays
from cagat.errors import DatasetError
from cagat.files import read_bounded

_MOST_BYTES = 64 * 2**20
# All that a pickle of arrays, sparse matrices and dictionaries of lists may name.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class _ArrayUnpickler(pickle.Unpickler):
    """An unpickler that can make arrays, and nothing that executes code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no array needs; nothing was executed")
        return _ALLOWED[module, name]


def read_array_pickle(path: Path) -> Any:
    """Read an array, a `scipy.sparse.csr_matrix` or a `dict[int, list[int]]`, and nothing else, from a pickle."""
    try:
        value = _ArrayUnpickler(io.BytesIO(read_bounded(path, _MOST_BYTES)), encoding="latin-1").load()
        if isinstance(value, dict):
            if all(type(node) is int for nodes in ([*value], *value.values()) for node in nodes):
                return {node: list(neighbours) for node, neighbours in value.items()}
        elif isinstance(value, sparse.csr_matrix):
            return as_csr(path.name, csr_arrays(value))
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            return value
    except DatasetError:
        raise
    except Exception as error:  # Whatever a broken pickle makes the libraries raise.
        raise DatasetError(f"{path.name}: is not a pickle of arrays ({error}). Fetch the file again.") from error
    raise DatasetError(f"{path.name}: holds a {type(value).__name__} that is no array of numbers. Fetch it again.")


def read_planetoid(folder: Path, name: str) -> RawGraph:
    """Read the graph in Planetoid's own node order: the rows of `allx`, then the test nodes by their number.

    The files must have known checksums, and the numbers of the test nodes no gaps, as in pubmed.
    """
    endings = ("allx", "tx", "ally", "ty", "graph")  # `x` and `y` only repeat the first rows of `allx` and `ally`.
    allx, tx, ally, ty, neighbours = (read_array_pickle(folder / f"ind.{name}.{ending}") for ending in endings)
    test = np.array(read_bounded(folder / f"ind.{name}.test.index", _MOST_BYTES).split(), dtype=np.int64)
    position = np.argsort(np.concatenate([np.arange(allx.shape[0]), test]))
    classes = np.concatenate([ally, ty])[position]
    edges = [(source, target) for source, targets in neighbours.items() for target in targets]
    return RawGraph(
        edge_index=np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        features=sparse.vstack([allx, tx]).tocsr()[position],
        labels=np.where(classes.any(axis=1), classes.argmax(axis=1), -1).astype(np.int64),
        name=name,
        source=f"Planetoid's files in {folder}",
    ).check()
