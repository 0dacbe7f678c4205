"""The graph of nearest neighbours."""

from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from cagat.errors import ConfigError
from cagat.estimator.edges import Edges


class Neighbours:
    """The points that a classifier was fitted to, and who is near to whom in Euclidean distance.

    Args:
        features: The points, dense or scipy sparse.
        count: How many neighbours a point is joined to; if there are not as many, to all.
    """

    def __init__(self, features: Any, count: int) -> None:
        if not isinstance(count, Integral) or count < 1:
            raise ConfigError(f"n_neighbors must be an integer of at least 1, got {count!r}.")
        self.num_nodes: int = features.shape[0]
        self.count = min(int(count), self.num_nodes - 1)
        self._search: Any = NearestNeighbors(n_neighbors=self.count).fit(_in_double(features))

    def edges(self) -> Edges:
        """Each point joined to its neighbours, both ways, without weights."""
        near: Any = self._search.kneighbors_graph().tocoo()
        both = sparse.coo_array((np.ones(near.nnz), (near.row, near.col)), shape=near.shape)
        both = (both + both.T).tocoo()
        return Edges(torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64)))

    def of(self, features: Any) -> Tensor:
        """The neighbours of other points among those fitted to, shape (points, neighbours)."""
        found: Any = self._search.kneighbors(_in_double(features), return_distance=False)
        return torch.from_numpy(found.astype(np.int64))


def _in_double(features: Any) -> Any:
    # Distances in single precision depend on how many are computed at a time.
    return features.astype(np.float64)
