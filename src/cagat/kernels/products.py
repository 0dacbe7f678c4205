"""The sparse products, differentiable, on any device.

A matrix is a :class:`~cagat.kernels.csr_pattern.CSRPattern` and its values, one number a head at each entry. The
gradients of :func:`spmm_heads` and :func:`sddmm_heads` are each other, and every product can be differentiated any
number of times.
"""

from torch import Tensor

from cagat.kernels import operators
from cagat.kernels.csr_pattern import CSRPattern


def spmm(pattern: CSRPattern, weights: tuple[Tensor, Tensor], x: Tensor, *, transpose: bool = False) -> Tensor:
    r"""The product :math:`y_i = \sum_j w_{ij} x_j` with constant weights that all columns share.

    Args:
        pattern: Where the entries are.
        weights: The weights in the order of the entries and in the order of the transpose's entries. They get no
            gradient.
        x: Dense features.
        transpose: Whether to multiply by the transpose instead.

    Shapes:
        - **weights:** twice :math:`(E)`
        - **x:** :math:`(n, *)`
        - **output:** :math:`(n, *)`
    """
    forward = (pattern.rowptr, pattern.col, weights[0])
    backward = (pattern.rowptr_t, pattern.col_t, weights[1])
    if transpose:
        forward, backward = backward, forward
    _require_one_kind("spmm", pattern, weights=weights[0], x=x)
    _require_length("spmm", "x", x, backward[0].numel() - 1)
    y: Tensor = operators.spmm(*forward, *backward, x.flatten(1) if x.dim() > 1 else x[:, None])
    return y.view(y.size(0), *x.shape[1:])


def spmm_heads(pattern: CSRPattern, values: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
    r"""The product :math:`y_{ih} = \sum_j v_{ijh} x_{jh}` with values of its own for each head.

    Args:
        pattern: Where the entries are.
        values: The values at the entries.
        x: Dense features for each head, as wide as wanted.
        transpose: Whether to multiply by the transpose instead; the values stay in the matrix's own order.

    Shapes:
        - **values:** :math:`(E, H)`
        - **x:** :math:`(n, H, C)`
        - **output:** :math:`(n, H, C)`
    """
    _require_one_kind("spmm_heads", pattern, values=values, x=x)
    _require_dim("spmm_heads", 2, values=values)
    _require_dim("spmm_heads", 3, x=x)
    _require_length("spmm_heads", "x", x, pattern.num_rows if transpose else pattern.num_cols)
    _require_length("spmm_heads", "values", values, pattern.num_entries)
    _require_heads("spmm_heads", values.size(1), x=x)
    y: Tensor = operators.spmm_heads(
        pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t, pattern.perm_t, values, x, transpose
    )
    return y


def sddmm_heads(pattern: CSRPattern, a: Tensor, b: Tensor) -> Tensor:
    r"""The inner products :math:`\langle a_{ih}, b_{jh} \rangle` at the entries :math:`(i, j)`.

    Args:
        pattern: Where the entries are.
        a: Dense features of the rows.
        b: Dense features of the columns.

    Shapes:
        - **a:** :math:`(n, H, C)`
        - **b:** :math:`(n, H, C)`
        - **output:** :math:`(E, H)`
    """
    _require_one_kind("sddmm_heads", pattern, a=a, b=b)
    _require_dim("sddmm_heads", 3, a=a, b=b)
    _require_length("sddmm_heads", "a", a, pattern.num_rows)
    _require_length("sddmm_heads", "b", b, pattern.num_cols)
    _require_heads("sddmm_heads", a.size(1), b=b)
    if a.size(2) != b.size(2):
        raise ValueError(f"sddmm_heads: a has {a.size(2)} channels and b has {b.size(2)}; they must be as many")
    y: Tensor = operators.sddmm_heads(
        pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t, pattern.perm_t, a, b
    )
    return y


def edge_softmax(
    pattern: CSRPattern, dst: Tensor, src: Tensor, edge: Tensor | None = None, negative_slope: float = 0.2
) -> Tensor:
    r"""GAT's attention :math:`G_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(d_i + s_j + e_{ij})`, Eq. (1)-(2).

    Args:
        pattern: Where the entries are.
        dst: The share of the row's node in the logit.
        src: The share of the column's node in the logit.
        edge: The share of the entry itself, if there is one.
        negative_slope: LeakyReLU's slope below zero.

    Shapes:
        - **dst**, **src:** :math:`(n, H)`
        - **edge**, **output:** :math:`(E, H)`
    """
    parts = {"dst": dst, "src": src} if edge is None else {"dst": dst, "src": src, "edge": edge}
    _require_one_kind("edge_softmax", pattern, **parts)
    _require_dim("edge_softmax", 2, **parts)
    _require_length("edge_softmax", "dst", dst, pattern.num_rows)
    _require_length("edge_softmax", "src", src, pattern.num_cols)
    if edge is not None:
        _require_length("edge_softmax", "edge", edge, pattern.num_entries)
    _require_heads("edge_softmax", dst.size(1), **parts)
    y: Tensor = operators.edge_softmax(
        pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t, pattern.perm_t, dst, src, edge, negative_slope
    )
    return y


def edge_diffusion(pattern: CSRPattern, weights: tuple[Tensor, Tensor], values: Tensor) -> Tensor:
    r"""One step of diffusion :math:`\bar{A} S \bar{A}^T`, Eq. (5), read at the entries of :math:`S` only.

    Args:
        pattern: Where the entries of :math:`\bar{A}`, and of :math:`S`, are.
        weights: The values of :math:`\bar{A}` in both orders, as for :func:`spmm`. They get no gradient.
        values: The values of :math:`S`.

    Shapes:
        - **values:** :math:`(E, H)`
        - **output:** :math:`(E, H)`
    """
    _require_one_kind("edge_diffusion", pattern, weights=weights[0], values=values)
    _require_dim("edge_diffusion", 2, values=values)
    _require_length("edge_diffusion", "values", values, pattern.num_entries)
    y: Tensor = operators.edge_diffusion(
        pattern.rowptr, pattern.col, weights[0], pattern.rowptr_t, pattern.col_t, weights[1], values, False
    )
    return y


def _require_one_kind(operator: str, pattern: CSRPattern, **tensors: Tensor) -> None:
    """All inputs must have one floating-point dtype, and lie where the pattern lies."""
    dtypes = {name: tensor.dtype for name, tensor in tensors.items()}
    if len(set(dtypes.values())) > 1 or not next(iter(dtypes.values())).is_floating_point:
        told = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise TypeError(f"{operator}: all inputs must have one floating-point dtype, got {told}; convert with .to()")
    for name, tensor in tensors.items():
        if tensor.device != pattern.col.device:
            raise ValueError(
                f"{operator}: {name} is on {tensor.device}, but the graph on {pattern.col.device}; move one with .to()"
            )


def _require_length(operator: str, name: str, tensor: Tensor, length: int) -> None:
    if tensor.size(0) != length:
        raise ValueError(f"{operator}: {name} has {tensor.size(0)} rows where the pattern asks for {length}")


def _require_dim(operator: str, dim: int, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.dim() != dim:
            raise ValueError(f"{operator}: {name} must have {dim} dimensions, got shape {tuple(tensor.shape)}")


def _require_heads(operator: str, heads: int, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.size(1) != heads:
            raise ValueError(f"{operator}: {name} has {tensor.size(1)} heads where the others have {heads}")
