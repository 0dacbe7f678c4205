"""Node features of which few are not zero, and what takes features whether they are sparse or not."""

import copy
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels import CSRPattern, dropout, spmm_heads
from cagat.kernels.graph_cache import TensorCache
from cagat.nn.validation import check_features

_known = TensorCache()

# The gradient of a product gathers rows of so many nodes at a time: rows of 64 numbers are then 1 MB, which the second
# cache holds. On PubMed it takes 4.0 ms instead of 13.2 (one thread; strips of 1024 to 4096 nodes are alike).
_STRIP = 4096


class SparseFeatures:
    """A sparse feature matrix, prepared once for products and their gradients.

    Layers and networks make one from a torch sparse tensor by themselves. Make it yourself with :meth:`from_tensor` to
    keep it across calls or to compile the network.

    Args:
        pattern: Where the features are that are not zero.
        values: The features there.
        global_entries: If these are some rows of a larger matrix whose dropout they share, the number that each value
            has there.
    """

    def __init__(self, pattern: CSRPattern, values: Tensor, global_entries: Tensor | None = None) -> None:
        self.pattern = pattern
        self.values = values
        self.global_entries = global_entries
        self._strips = _in_strips(pattern)

    @classmethod
    def from_tensor(cls, x: Tensor) -> "SparseFeatures":
        """Prepare a torch sparse matrix of any layout; the second call with the same tensor costs nothing."""
        check_features(x)

        def make() -> SparseFeatures:
            # As with graphs: usable in training whoever made it first, and unchanged when the caller's tensor changes.
            with torch.inference_mode(False), torch.no_grad():
                coo = x.clone().to_sparse(layout=torch.sparse_coo).coalesce()
                row, col = coo.indices()
                # A tensor of its own: torch.compile stumbles over a view of a sparse one.
                return cls(CSRPattern.from_sorted(row, col, x.size(0), x.size(1)), coo.values().clone())

        features: SparseFeatures = _known.get((x,), (), make)
        return features

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the features."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """The number of nodes and the number of features."""
        return self.pattern.num_rows, self.pattern.num_cols

    def to_dense(self) -> Tensor:
        """The same features with their zeros."""
        return self.matmul(torch.eye(self.shape[1], dtype=self.values.dtype, device=self.values.device))

    def dropout(self, p: float, training: bool) -> "SparseFeatures":
        """Dropout of the values; zeros stay zeros whether they are dropped or not."""
        dropped = copy.copy(self)  # What was prepared is shared.
        dropped.values = dropout(self.values, p, training, self.global_entries)
        return dropped

    def rows(self, nodes: Tensor, *, share_dropout: bool = False) -> "SparseFeatures":
        """The features of some nodes; with ``share_dropout``, a seed drops those of their values that it drops here."""
        row, entry = self.pattern.entries_of(nodes)
        pattern = CSRPattern.from_sorted(row, self.pattern.col[entry].long(), nodes.numel(), self.shape[1])
        return SparseFeatures(pattern, self.values[entry], entry if share_dropout else None)

    def matmul(self, weight: Tensor) -> Tensor:
        """The product with a dense matrix of shape ``(features, channels)``."""
        copies = self._strips.num_cols // max(1, self.pattern.num_cols)
        repeated = weight.repeat(copies, 1) if copies > 1 else weight
        return spmm_heads(self._strips, self.values[:, None], repeated[:, None, :]).squeeze(1)


def _in_strips(pattern: CSRPattern) -> CSRPattern:
    """The features of every strip of nodes as columns of their own, so that the gradient goes strip by strip."""
    # Copies of weights must stay cheap beside the products with the entries themselves.
    strips = min(-(-pattern.num_rows // _STRIP), pattern.num_entries // max(1, 8 * pattern.num_cols))
    if strips <= 1:
        return pattern
    row = pattern.rows()
    col = pattern.col.long() + row * strips // pattern.num_rows * pattern.num_cols
    return CSRPattern.from_sorted(row, col, pattern.num_rows, strips * pattern.num_cols)


Features = Tensor | SparseFeatures


def as_features(x: Features) -> Features:
    """Check node features, and prepare them if they are sparse."""
    if isinstance(x, SparseFeatures):
        return x
    if is_torch_sparse_tensor(x):
        return SparseFeatures.from_tensor(x)
    check_features(x)
    return x


def feature_dropout(x: Features, p: float, training: bool, global_rows: Tensor | None = None) -> Features:
    """As :func:`cagat.kernels.dropout`; of sparse features, which know their rows, only what is not zero is dropped."""
    features = as_features(x)
    if isinstance(features, SparseFeatures):
        return features.dropout(p, training)
    return dropout(features, p, training, global_rows)


def apply_linear(layer: Any, x: Features) -> Tensor:
    """What PyG's ``Linear`` without bias makes of features that may be sparse."""
    if isinstance(x, SparseFeatures):
        if isinstance(layer.weight, UninitializedParameter):
            layer(x.values.new_empty(0, x.shape[1]))  # A layer of unknown input size learns it from an input.
        weight: Tensor = layer.weight
        return x.matmul(weight.t())
    y: Tensor = layer(x)
    return y
