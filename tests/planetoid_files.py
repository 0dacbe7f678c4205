"""A graph of five nodes as Planetoid's eight files, written as Python 2 would have."""

import pickle
from pathlib import Path

import numpy as np
from scipy import sparse

from array_pickles import array, csr
from cagat.data.npz import write_npz
from cagat.data.raw_graph import RawGraph

X = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5], [6, 7, 0]], dtype=np.float32)
Y = np.array([0, 1, 1, 0, 1])
NEIGHBOURS = {0: [1, 2], 1: [0], 2: [0, 3, 4], 3: [2, 3], 4: [2]}


def planetoid_files(name: str) -> dict[str, bytes]:
    """Nodes 0 to 2 in `allx`, the test nodes 4 and 3 in this order."""
    one_hot = np.eye(2, dtype=np.int32)[Y]
    files = {
        "x": csr(X[:1]),
        "y": array(one_hot[:1]),
        "allx": csr(X[:3]),
        "ally": array(one_hot[:3]),
        "tx": csr(X[[4, 3]]),
        "ty": array(one_hot[[4, 3]]),
    }
    contents = {f"ind.{name}.{part}": b"\x80\x02" + program + b"." for part, program in files.items()}
    contents[f"ind.{name}.graph"] = pickle.dumps(NEIGHBOURS, 2)
    contents[f"ind.{name}.test.index"] = b"4\n3\n"
    return contents


def tiny_npz(path: Path) -> bytes:
    """The file that must come of them."""
    edges = [(node, other) for node, others in NEIGHBOURS.items() for other in others]
    graph = RawGraph(
        np.array(edges).T, sparse.csr_matrix(X), Y.astype(np.int64), list("01234"), ["0", "1"], name="tiny"
    )
    write_npz(path, graph)
    return path.read_bytes()
