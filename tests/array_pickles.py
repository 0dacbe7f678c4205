"""Pickles of arrays as Python 2 wrote them: protocol 2, texts as byte strings, arrays through numpy.core.multiarray."""

import numpy as np
from scipy import sparse

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
