"""Sparse matrices from arrays that nobody has checked yet."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.numbers import as_float32, as_int64
from cagat.data.raw_graph import Features
from cagat.errors import DatasetError


def checked_csr(
    what: str, data: NDArray[Any] | None, indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> Features:
    """Build a float32 CSR matrix, or say in which way its arrays do not fit together.

    Args:
        what: Names the matrix in errors.
        data: The entries; `None` when all are 1.
        indices: The column of each entry.
        indptr: Where each row starts in `indices`, and where the last one ends.
        shape: Rows and columns.
    """
    indices, indptr = as_int64(f"{what}: indices", indices, (None,)), as_int64(f"{what}: indptr", indptr, (None,))
    rows, columns = shape
    ends_fit = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if rows < 0 or columns < 0 or not ends_fit or (np.diff(indptr) < 0).any():
        raise DatasetError(f"{what}: indptr does not fit a matrix of shape {shape} with {len(indices)} entries.")
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        worst = indices.min() if indices.min() < 0 else indices.max()
        raise DatasetError(f"{what}: indices holds {worst}, but columns are 0 to {columns - 1}.")
    values = np.ones(len(indices), np.float32) if data is None else as_float32(f"{what}: data", data)
    if values.shape != indices.shape:
        raise DatasetError(f"{what}: data has shape {values.shape}, but there are {len(indices)} entries.")
    return sparse.csr_matrix((values, indices, indptr), shape=shape)
