"""A graph of five nodes as Planetoid's files, pickled as Python 2 did: protocol 2, texts as byte strings."""

import pickle
from pathlib import Path

import numpy as np
from scipy import sparse

from cagat.data.graph import RawGraph
from cagat.data.graph_files import write_npz

_DTYPE = b"cnumpy\ndtype\n(U\x02%sK\x00K\x01tR(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
_START = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"


def array(numbers: np.ndarray, shape: "tuple[int, ...] | None" = None) -> bytes:
    """The program that makes an array, of a shape that may be another than its own."""
    shape = numbers.shape if shape is None else shape
    lengths = b"".join(b"M" + length.to_bytes(2, "little") for length in shape)
    content = numbers.tobytes()
    dtype = _DTYPE % numbers.dtype.str[1:].encode()
    return (
        _START + b"(K\x01(" + lengths + b"t" + dtype + b"\x89T" + len(content).to_bytes(4, "little") + content + b"tb"
    )


def csr(dense: np.ndarray) -> bytes:
    """The program that makes a sparse matrix."""
    matrix = sparse.csr_matrix(dense)
    arrays = {b"data": matrix.data, b"indices": matrix.indices.astype("<i4"), b"indptr": matrix.indptr.astype("<i4")}
    state = b"".join(b"U%c%s" % (len(key), key) + array(part) for key, part in arrays.items())
    rows, columns = matrix.shape
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(U\x06_shapeK%cK%c\x86" % (rows, columns) + state + b"ub"


X = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 0], [0, 0, 5], [6, 7, 0]], dtype=np.float32)
Y = np.array([0, 1, 1, 0, 1])
NEIGHBOURS = {0: [1, 2], 1: [0], 2: [0, 3, 4], 3: [2, 3], 4: [2]}


def planetoid_files(name: str) -> dict[str, bytes]:
    """Nodes 0 to 2 in `allx`, the test nodes 4 and 3 in this order."""
    one_hot = np.eye(2, dtype=np.int32)[Y]
    files = {
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
    write_npz(path, graph, checksum=False)
    return path.read_bytes()
