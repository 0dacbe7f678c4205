"""PubMed as Planetoid published it: eight files, seven of them Python 2 pickles."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.array_pickle import MOST_BYTES, read_array_pickle
from cagat.data.numbers import as_int64
from cagat.data.raw_graph import RawGraph
from cagat.errors import DatasetError
from cagat.files import read_bounded

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
"""The ends of the file names `ind.NAME.*`. `x` and `y` are the first rows of `allx` and `ally`."""


def read_planetoid(folder: Path, name: str) -> RawGraph:
    """Read the graph in Planetoid's own node order: the rows of `allx`, then the test nodes by their number."""
    paths = {part: folder / f"ind.{name}.{part}" for part in PARTS}
    allx, tx, ally, ty = (read_array_pickle(paths[part]) for part in ("allx", "tx", "ally", "ty"))
    neighbours = read_array_pickle(paths["graph"])
    if not (sparse.issparse(allx) and sparse.issparse(tx) and isinstance(neighbours, dict)):
        raise DatasetError(f"{folder}: allx and tx must be sparse matrices and graph a dictionary. Fetch them again.")
    test = _read_test_index(paths["test.index"])
    rows = np.concatenate([np.arange(allx.shape[0]), test])
    if len(test) != tx.shape[0] or not np.array_equal(np.sort(rows), np.arange(len(rows))):
        raise DatasetError(
            f"{folder}: {tx.shape[0]} test rows and {len(test)} test numbers do not continue the {allx.shape[0]} "
            "others. Only graphs whose test nodes have no gaps are read, such as pubmed."
        )
    position = np.argsort(rows)
    one_hot = np.concatenate(
        [as_int64(f"{folder}: {what}", y, (None, None)) for what, y in (("ally", ally), ("ty", ty))]
    )
    if len(one_hot) != len(rows):
        raise DatasetError(f"{folder}: {len(one_hot)} labels do not fit {len(rows)} nodes. Fetch the files again.")
    one_hot = one_hot[position]
    return RawGraph(
        edge_index=_edges(neighbours),
        features=sparse.vstack([allx, tx]).tocsr()[position],
        labels=np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1).astype(np.int64),
        node_names=[str(node) for node in range(len(rows))],
        class_names=[str(label) for label in range(one_hot.shape[1])],
        name=name,
        source=f"Planetoid's files in {folder}",
    ).check()


def _read_test_index(path: Path) -> NDArray[np.int64]:
    try:
        return np.array([int(line) for line in read_bounded(path, MOST_BYTES).decode("ascii").split()], dtype=np.int64)
    except (OSError, ValueError, OverflowError) as error:
        raise DatasetError(f"{path.name}: one node number a line is expected ({error}). Fetch it again.") from None


def _edges(neighbours: dict[int, list[int]]) -> NDArray[np.int64]:
    sources = np.repeat(np.array(list(neighbours)), [len(targets) for targets in neighbours.values()])
    targets = np.array([target for targets in neighbours.values() for target in targets], dtype=np.int64)
    return np.stack([sources.astype(np.int64), targets])
