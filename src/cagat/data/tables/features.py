"""From a table of features to a matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.memory import require_memory
from cagat.data.raw_graph import Features
from cagat.data.tables.columns import in_order
from cagat.data.tables.given import GivenTable
from cagat.errors import DatasetError

_SPARSE_BELOW = 0.25  # A table with fewer entries than this that are not zero is kept as a sparse matrix.


def feature_matrix(given: GivenTable, rows: NDArray[np.int64], count: int) -> tuple[Features, list[str]]:
    """Return one row a node, sparse or dense, and the names of the columns; `rows` says which node each row is of."""
    if len(given.layout.texts) == 2:
        return _sparse_features(given, rows, count)
    columns = given.layout.numbers
    require_memory(
        f"{given.what}: a matrix of {count} nodes and {len(columns)} features",
        4 * count * len(columns),
        "Write the features that are not zero as node,feature,value.",
    )
    matrix = np.zeros((count, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        matrix[rows, place] = given.numbers(column)
    few = np.count_nonzero(matrix) < _SPARSE_BELOW * matrix.size
    return (sparse.csr_matrix(matrix) if few else matrix), list(columns)


def _sparse_features(given: GivenTable, rows: NDArray[np.int64], count: int) -> tuple[Features, list[str]]:
    found, codes = given.codes(1)
    names = in_order(found)
    number = {name: place for place, name in enumerate(names)}
    column = np.array([number[name] for name in found], dtype=np.int64)[codes]
    values = given.numbers(given.layout.numbers[0]) if given.layout.numbers else np.ones(len(rows), dtype=np.float32)
    matrix = sparse.csr_matrix((values, (rows, column)), shape=(count, len(names)))
    if matrix.nnz != len(rows):
        raise DatasetError(
            f"{given.what}: {len(rows) - matrix.nnz} rows name a node and a feature that another row "
            "names too. Keep one."
        )
    return matrix, names
