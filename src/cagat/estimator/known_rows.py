"""Recognising rows that were seen before."""

from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class KnownRows:
    """The rows of a matrix, remembered by their digests.

    Args:
        rows: Single precision, dense or CSR.
    """

    def __init__(self, rows: Any) -> None:
        self._digests = _digests(rows)
        # Of equal rows the first is meant, so it is written last.
        self._places = {digest: place for place, digest in reversed(list(enumerate(self._digests)))}

    def are(self, rows: Any) -> bool:
        """Whether these are the very same rows, in the same order."""
        return self._digests == _digests(rows)

    def find(self, rows: Any) -> NDArray[np.int64]:
        """The place of each row, or -1 if it is not known."""
        return np.array([self._places.get(digest, -1) for digest in _digests(rows)], dtype=np.int64)


def _digests(rows: Any) -> list[bytes]:
    """A digest of each row, the same whether the row is dense or sparse."""
    matrix = sparse.csr_array(rows, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    where, values, ends = matrix.indices.astype(np.int64), matrix.data, matrix.indptr.tolist()
    return [
        blake2b(where[start:end].tobytes() + values[start:end].tobytes(), digest_size=16).digest()
        for start, end in pairwise(ends)
    ]
