"""The products on the CPU: torch tensors in, compiled loops over blocks of rows, torch tensors out."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.kernels import numba_kernels as kernels
from cagat.kernels import torch_products
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.edge_diffusion_loop import edge_diffusion_loop
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_program import RowProgram
from cagat.kernels.row_threads import row_threads
from cagat.kernels.thread_count import kernel_threads


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array


def _run(kernel: Any, rowptr: NDArray[Any], *arguments: Any, width: int) -> None:
    row_threads.run(kernel, rowptr, arguments, width, kernel_threads())


def _has_whole_rows(col: Tensor, x: Tensor) -> bool:
    """Whether features of one head are rows of a row program as they are."""
    layout = RowLayout(1, x.size(-1), x.dtype)
    return col.dtype == torch.int32 and layout.is_possible and layout.width == layout.channels


def spmm(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    """See :func:`cagat.kernels.products.spmm`."""
    if _has_whole_rows(col, x):
        pattern = CSRPattern(rowptr, col, rowptr, col, col)  # The transpose is not asked for.
        weight, out = weight.contiguous(), x.new_empty(rowptr.numel() - 1, x.size(1))
        program = RowProgram(pattern, (weight, weight), RowLayout(1, x.size(1), x.dtype))
        program.aggregate(out, x=x.detach().contiguous())
        program.run()
        return out
    out = x.new_empty(rowptr.numel() - 1, x.size(1))
    pointers = _array(rowptr)
    _run(kernels.spmm, pointers, pointers, _array(col), _array(weight), _array(x), out.numpy(), width=max(1, x.size(1)))
    return out


def spmm_heads(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    perm_t: Tensor,
    values: Tensor,
    x: Tensor,
    transpose: bool,
) -> Tensor:
    """See :func:`cagat.kernels.products.spmm_heads`."""
    pointers = _array(rowptr_t if transpose else rowptr)
    out = x.new_empty(len(pointers) - 1, x.size(1), x.size(2))
    if x.size(1) == 1 and _has_whole_rows(col, x):
        program = RowProgram(CSRPattern(rowptr, col, rowptr_t, col_t, perm_t), None, RowLayout(1, x.size(2), x.dtype))
        factors = (values.detach().contiguous(), x.detach().contiguous())
        program.aggregate(out, values=factors[0], y=factors[1], transpose=transpose)
        program.run()
        return out
    width = max(1, x.size(1) * x.size(2))
    if transpose:
        indices = (_array(col_t), _array(perm_t))
        _run(kernels.spmm_heads_t, pointers, pointers, *indices, _array(values), _array(x), out.numpy(), width=width)
    else:
        _run(kernels.spmm_heads, pointers, pointers, _array(col), _array(values), _array(x), out.numpy(), width=width)
    return out


def sddmm_heads(rowptr: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """See :func:`cagat.kernels.products.sddmm_heads`."""
    out = a.new_empty(col.numel(), a.size(1))
    pointers = _array(rowptr)
    width = max(1, a.size(1) * a.size(2))
    _run(kernels.sddmm_heads, pointers, pointers, _array(col), _array(a), _array(b), out.numpy(), width=width)
    return out


def _softmax_program(pattern: CSRPattern, logits: Tensor) -> tuple[RowProgram, RowLayout] | None:
    """A program for vectors of heads, if there can be one."""
    layout = RowLayout(logits.size(1), 1, logits.dtype)
    if not layout.is_possible or pattern.col.dtype != torch.int32:
        return None
    return RowProgram(pattern, None, layout), layout


def edge_softmax(
    rowptr: Tensor, col: Tensor, dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float
) -> Tensor:
    """See :func:`cagat.kernels.products.edge_softmax`."""
    made = _softmax_program(CSRPattern(rowptr, col, rowptr, col, col), dst)  # The transpose is not asked for.
    if made is None:
        return torch_products.edge_softmax(rowptr, col, dst, src, edge, negative_slope)
    program, layout = made
    out = dst.new_empty(col.numel(), layout.padded_heads)
    logits = (layout.values(dst), layout.values(src), None if edge is None else layout.values(edge))
    program.softmax(out, *logits, negative_slope)
    program.run()
    return layout.unpadded(out)


def edge_softmax_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    perm_t: Tensor,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`edge_softmax` at ``dst``, at ``src`` and at ``edge``."""
    made = _softmax_program(CSRPattern(rowptr, col, rowptr_t, perm_t, perm_t), dst)  # Sums need no columns.
    if made is None:
        return torch_products.edge_softmax_backward(
            rowptr, col, rowptr_t, perm_t, dst, src, edge, negative_slope, softmax, grad
        )
    program, layout = made
    heads = layout.padded_heads
    grad_logit, grad_dst, grad_src = (dst.new_empty(size.size(0), heads) for size in (softmax, dst, src))
    logits = (layout.values(dst), layout.values(src), None if edge is None else layout.values(edge))
    program.softmax_backward(grad_logit, grad_dst, *logits, negative_slope, layout.values(softmax), layout.values(grad))
    program.column_sums(grad_src, grad_logit)
    program.run()
    return layout.unpadded(grad_dst), layout.unpadded(grad_src), layout.unpadded(grad_logit)


def edge_diffusion(
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    values: Tensor,
    transpose: bool,
) -> Tensor:
    """See :func:`cagat.kernels.products.edge_diffusion`."""
    layout = RowLayout(values.size(1), 1, values.dtype)
    if not layout.is_possible or col.dtype != torch.int32:
        return torch_products.edge_diffusion(rowptr, col, weight, rowptr_t, col_t, weight_t, values, transpose)
    padded = _array(layout.values(values))
    out = values.new_empty(padded.shape)
    pointers = _array(rowptr)
    left = (rowptr_t, col_t, weight_t) if transpose else (rowptr, col, weight)
    # Both passes over a row visit its neighbours' entries, so an entry costs about the mean degree.
    degree = 1 + col.numel() // max(1, rowptr.numel() - 1)
    inputs = (*(_array(tensor) for tensor in left), padded)
    _run(
        edge_diffusion_loop(layout.padded_heads),
        pointers,
        pointers,
        _array(col),
        *inputs,
        out.numpy(),
        width=2 * degree * layout.padded_heads,
    )
    return layout.unpadded(out)


def dropout(x: Tensor, seed: int, p: float, global_rows: Tensor | None = None, width: int | None = None) -> Tensor:
    """See :func:`cagat.kernels.dropout.dropout`; rows may be padded beyond the width of the larger matrix."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    numbers = (np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32), np.uint32(round(p * 2**32)))
    if global_rows is not None and x.numel() > 0:
        rows, kept = _array(x).reshape(len(x), -1), out.view(len(x), -1).numpy()
        columns = rows.shape[1] if width is None else width
        kernels.dropout_rows(
            rows, _array(global_rows), columns, *numbers, kept.dtype.type(1 / (1 - p)), kept, 0, len(rows)
        )
        return out
    flat, result = _array(x).reshape(-1), out.view(-1).numpy()
    kernels.dropout(flat, *numbers, result.dtype.type(1 / (1 - p)), result, 0, len(flat))
    return out
