"""Node features of which few are not zero."""

import torch
from torch import Tensor

from cagat.kernels import CSRPattern, dropout, spmm_heads
from cagat.kernels.tensor_cache import TensorCache

_known = TensorCache()


class SparseFeatures:
    """A sparse feature matrix, prepared once for products and their gradients.

    Layers and networks make one from a torch sparse tensor by themselves. Make it yourself with :meth:`from_tensor` to
    keep it across calls or to compile the network.

    Args:
        pattern: Where the features are that are not zero.
        values: The features there.
    """

    def __init__(self, pattern: CSRPattern, values: Tensor) -> None:
        self.pattern = pattern
        self.values = values

    @classmethod
    def from_tensor(cls, x: Tensor) -> "SparseFeatures":
        """Prepare a torch sparse matrix of any layout; the second call with the same tensor costs nothing."""
        if x.requires_grad:
            raise ValueError("sparse features get no gradient; pass x.to_dense() to differentiate with respect to x")
        features: SparseFeatures = _known.get((x,), (), lambda: cls._made_from(x))
        return features

    @classmethod
    def _made_from(cls, x: Tensor) -> "SparseFeatures":
        if x.dim() != 2:
            raise ValueError(f"sparse features must be a matrix, got shape {tuple(x.shape)}")
        # As with graphs: usable in training whoever made it first, and unchanged when the caller's tensor changes.
        with torch.inference_mode(False), torch.no_grad():
            coo = x.clone().to_sparse(layout=torch.sparse_coo).coalesce()
            row, col = coo.indices()
            # A tensor of its own: torch.compile stumbles over a view of a sparse one.
            return cls(CSRPattern.from_sorted(row, col, x.size(0), x.size(1)), coo.values().clone())

    @property
    def shape(self) -> tuple[int, int]:
        """The number of nodes and the number of features."""
        return self.pattern.num_rows, self.pattern.num_cols

    def to_dense(self) -> Tensor:
        """The same features with their zeros."""
        return self.matmul(torch.eye(self.shape[1], dtype=self.values.dtype, device=self.values.device))

    def dropout(self, p: float, training: bool) -> "SparseFeatures":
        """Dropout of the values; zeros stay zeros whether they are dropped or not."""
        return SparseFeatures(self.pattern, dropout(self.values, p, training))

    def matmul(self, weight: Tensor) -> Tensor:
        """The product with a dense matrix of shape ``(features, channels)``."""
        return spmm_heads(self.pattern, self.values[:, None], weight[:, None, :]).squeeze(1)
