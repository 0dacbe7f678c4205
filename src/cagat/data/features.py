"""Scaling of node features."""

from typing import Literal, get_args

import torch
from torch import Tensor

from cagat.errors import DatasetError, NonFiniteError

Normalization = Literal["l1", "l2", "binary", "none"]


def normalize_features(x: Tensor, norm: Normalization = "l1") -> Tensor:
    """Scale the rows of a feature matrix; a sparse matrix stays sparse, a row of zeros stays zero.

    Args:
        x: Shape `(nodes, features)`, dense or sparse CSR. It is not changed.
        norm: `"l1"`: absolute values of a row sum to 1; `"l2"`: a row has length 1; `"binary"`: whatever is not zero
            becomes 1; `"none"`: the matrix itself.
    """
    if norm not in get_args(Normalization):
        raise DatasetError(f"There is no normalization {norm!r}. Choose one of {', '.join(get_args(Normalization))}.")
    if not isinstance(x, Tensor):
        raise DatasetError(f"Features must be a tensor, but are a {type(x).__name__}. Convert with torch.as_tensor(x).")
    if norm == "none":
        return x
    if x.dim() != 2:
        raise DatasetError(f"Features must have shape (nodes, features), but have {tuple(x.shape)}. Reshape them.")
    if not x.dtype.is_floating_point:
        raise DatasetError(f"Features must be floating-point numbers, but are {x.dtype}. Call x.float() first.")
    if x.layout is torch.strided:
        _require_finite(x)
        if norm == "binary":
            return (x != 0).to(x.dtype)
        return torch.nn.functional.normalize(x, p=1 if norm == "l1" else 2, dim=1, eps=torch.finfo(x.dtype).tiny)
    if x.layout is not torch.sparse_csr:
        raise DatasetError(f"Features must be dense or sparse CSR, but are {x.layout}. Call x.to_sparse_csr() first.")
    values = x.values()
    _require_finite(values)
    scaled = (values != 0).to(x.dtype)
    if norm != "binary":
        rows = x.crow_indices().diff()
        size = values.abs() if norm == "l1" else values.square()
        total = torch.segment_reduce(size, "sum", lengths=rows)
        length = total if norm == "l1" else total.sqrt()
        scaled = values / length.clamp(min=torch.finfo(x.dtype).tiny).repeat_interleave(rows)
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), scaled, size=x.shape, check_invariants=False)


def _require_finite(values: Tensor) -> None:
    """Raise if a value is NaN or infinite: it would spread over its row, or become a harmless 1."""
    # The sum of all values, which is cheap, tells whether any can be wrong.
    if values.is_meta or values.sum().isfinite() or values.isfinite().all():
        return
    count = int((~values.isfinite()).sum())
    raise NonFiniteError(
        f"Features hold {count} values that are NaN or infinite. Fill or remove them, for instance with "
        "torch.nan_to_num(x)."
    )
