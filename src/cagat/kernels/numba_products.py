"""The products on the CPU: the compiled loops, and the functions that call them with torch tensors.

A loop works on the rows ``start`` to ``stop`` and writes nothing that belongs to other rows. Heads and channels are the
last dimensions, so that the innermost loops run over adjacent numbers and become vector instructions.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.kernels import attention_steps, steps, torch_products
from cagat.kernels.compiled import CFunction, compiled, compiled_for_c
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.row_layout import RowLayout, row_layout
from cagat.kernels.row_passes import OWN, Constants, RowPasses, operands
from cagat.kernels.simd import index, keep_alive, load, multiply_add, store, tile, unpack, zeros
from cagat.kernels.threads import kernel_threads, row_threads


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array


def _run(loop: Any, rowptr: Tensor, *arguments: Tensor | bool, width: int) -> None:
    """Run a loop over all rows; each entry takes ``width`` multiplications."""
    arrays = tuple(_array(argument) if isinstance(argument, Tensor) else argument for argument in arguments)
    pointers = _array(rowptr)
    row_threads.run(loop, pointers, (pointers, *arrays), max(1, width), kernel_threads())


def _rows_alone(pattern: CSRPattern, transpose: bool) -> CSRPattern:
    """A pattern whose transpose is not asked for."""
    rowptr, col = (pattern.rowptr_t, pattern.col_t) if transpose else (pattern.rowptr, pattern.col)
    return CSRPattern(rowptr, col, rowptr, col, col)


def _has_whole_rows(pattern: CSRPattern, x: Tensor) -> bool:
    """Whether features of one head are rows of a pass as they are."""
    layout = row_layout(1, x.size(-1), x.dtype)
    return pattern.col.dtype == torch.int32 and layout.is_possible and layout.width == layout.channels


class _Aggregate(NamedTuple):
    counters: int = 0
    transpose: int = 0
    scale: int = 0
    scale_add: int = 0
    x: int = 0
    values: int = 0
    y: int = 0
    add: int = 0
    out: int = 0


class _Softmax(NamedTuple):
    counters: int = 0
    dst: int = 0
    src: int = 0
    edge: int = 0
    slope: int = 0
    softmax: int = 0
    grad: int = 0
    grad_logit: int = 0
    grad_dst: int = 0
    grad_src: int = 0


@cache
def _aggregate(constants: Constants) -> CFunction:
    D, L, _, H, A = constants

    def aggregate(address: Any) -> None:
        rows, columns, panels = operands(address)
        p = unpack(address, OWN, _Aggregate)
        side = columns if p.transpose else rows
        steps.aggregate(
            p.counters, side, panels, D, L, H, A, x=p.x, scale_x=p.scale, values=p.values, y=p.y, scale_y=p.scale,
            add=p.add, scale_add=p.scale_add, out=p.out,
        )  # fmt: skip

    return compiled_for_c(aggregate)


@cache
def _softmax(constants: Constants) -> CFunction:
    D, _, _, H, A = constants

    def softmax(address: Any) -> None:
        rows, _, _ = operands(address)
        p = unpack(address, OWN, _Softmax)
        attention_steps.softmax(
            p.counters, rows, D, H, A, dst=p.dst, src=p.src, edge=p.edge, slope=p.slope, out=p.softmax
        )

    return compiled_for_c(softmax)


@cache
def _softmax_backward(constants: Constants) -> CFunction:
    D, _, _, H, A = constants

    def softmax_backward(address: Any) -> None:
        rows, columns, _ = operands(address)
        p = unpack(address, OWN, _Softmax)
        c = attention_steps.softmax_backward(
            p.counters, rows, D, H, A, dst=p.dst, src=p.src, edge=p.edge, slope=p.slope, softmax=p.softmax,
            grad=p.grad, grad_logit=p.grad_logit, grad_dst=p.grad_dst,
        )  # fmt: skip
        attention_steps.sums(c, columns, D, H, A, values=p.grad_logit, out=p.grad_src)

    return compiled_for_c(softmax_backward)


def aggregate(
    passes: RowPasses, x: Tensor, out: Tensor, *, values: Tensor | None = None, scale: float = 1.0,
    add: Tensor | None = None, scale_add: float = 1.0, transpose: bool = False,
) -> None:  # fmt: skip
    """``out = scale M x + scale_add add``, where M has the given values, or else the weights of the passes."""
    is_shared, address, (by_product, by_add) = values is None, passes.address(x), passes.scales(scale, scale_add)
    arguments = _Aggregate(
        transpose=transpose, scale=by_product, scale_add=by_add, x=address if is_shared else 0,
        values=passes.address(values), y=0 if is_shared else address, add=passes.address(add), out=passes.address(out),
    )  # fmt: skip
    passes.run(_aggregate, arguments)


def _softmax_pass(
    pattern: CSRPattern, layout: RowLayout, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float, out: Tensor
) -> None:
    """GAT's attention ``out`` at the entries, of logits that are vectors of heads."""
    passes = RowPasses(pattern, None, layout)
    arguments = _softmax_arguments(passes, dst, src, edge, slope)
    passes.run(_softmax, arguments._replace(softmax=passes.address(out)))


def _softmax_backward_pass(
    pattern: CSRPattern, layout: RowLayout, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float,
    softmax: Tensor, grad: Tensor, grad_logit: Tensor, grad_dst: Tensor, grad_src: Tensor,
) -> None:  # fmt: skip
    """The gradients of :func:`_softmax_pass` at the logits of the entries, at ``dst`` and at ``src``."""
    passes = RowPasses(pattern, None, layout)
    arguments = _softmax_arguments(passes, dst, src, edge, slope)._replace(
        softmax=passes.address(softmax), grad=passes.address(grad), grad_logit=passes.address(grad_logit),
        grad_dst=passes.address(grad_dst), grad_src=passes.address(grad_src),
    )  # fmt: skip
    passes.run(_softmax_backward, arguments, steps=2)


def _softmax_arguments(passes: RowPasses, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float) -> _Softmax:
    logits = (passes.address(tensor) for tensor in (dst, src, edge))
    return _Softmax(0, *logits, *passes.scales(slope))


@compiled
def _spmm(rowptr: Any, col: Any, weight: Any, x: Any, out: Any, start: int, stop: int) -> None:
    """``out[i] = sum_j weight_ij x[j]``, one weight for all columns of ``x``."""
    for i in range(start, stop):
        for c in range(x.shape[1]):
            out[i, c] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j, w = col[e], weight[e]
            for c in range(x.shape[1]):
                out[i, c] += w * x[j, c]


def spmm(pattern: CSRPattern, weights: list[Tensor], x: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.spmm`."""
    rows, weight = _rows_alone(pattern, transpose), weights[transpose].contiguous()
    out = x.new_empty(rows.num_rows, x.size(1))
    if _has_whole_rows(pattern, x):
        passes = RowPasses(rows, (weight, weight), row_layout(1, x.size(1), x.dtype), by_panels=False)
        aggregate(passes, x.detach().contiguous(), out)
        return out
    _run(_spmm, rows.rowptr, rows.col, weight, x, out, width=x.size(1))
    return out


@compiled
def _spmm_heads(
    rowptr: Any, col: Any, perm: Any, is_permuted: bool, values: Any, x: Any, out: Any, start: int, stop: int
) -> None:
    """``out[i, h] = sum_j values_ij[h] x[j, h]``; of the transpose, ``perm`` says where the values of an entry are."""
    heads, channels = x.shape[1], x.shape[2]
    for i in range(start, stop):
        for h in range(heads):
            for c in range(channels):
                out[i, h, c] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            entry = perm[e] if is_permuted else e
            for h in range(heads):
                v = values[entry, h]
                for c in range(channels):
                    out[i, h, c] += v * x[j, h, c]


def spmm_heads(pattern: CSRPattern, values: Tensor, x: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.spmm_heads`."""
    rows = _rows_alone(pattern, transpose)
    out = x.new_empty(rows.num_rows, x.size(1), x.size(2))
    if x.size(1) == 1 and _has_whole_rows(pattern, x):
        passes = RowPasses(pattern, None, row_layout(1, x.size(2), x.dtype), by_panels=False)
        factor, values = x.detach().contiguous(), values.detach().contiguous()
        aggregate(passes, factor, out, values=values, transpose=transpose)
        return out
    width = x.size(1) * x.size(2)
    _run(_spmm_heads, rows.rowptr, rows.col, pattern.perm_t, transpose, values, x, out, width=width)
    return out


@compiled
def _sddmm_heads(rowptr: Any, col: Any, a: Any, b: Any, out: Any, start: int, stop: int) -> None:
    """``out_ij[h] = <a[i, h], b[j, h]>`` at the entries."""
    heads, channels = a.shape[1], a.shape[2]
    for i in range(start, stop):
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(heads):
                total = a.dtype.type(0)
                for c in range(channels):
                    total += a[i, h, c] * b[j, h, c]
                out[e, h] = total


def sddmm_heads(pattern: CSRPattern, a: Tensor, b: Tensor) -> Tensor:
    """See :func:`cagat.kernels.operators.sddmm_heads`."""
    out = a.new_empty(pattern.num_entries, a.size(1))
    _run(_sddmm_heads, pattern.rowptr, pattern.col, a, b, out, width=a.size(1) * a.size(2))
    return out


def _heads_layout(pattern: CSRPattern, values: Tensor) -> RowLayout | None:
    """A layout for vectors of heads, if there are loops for it."""
    layout = row_layout(values.size(1), 1, values.dtype)
    return layout if layout.is_possible and pattern.col.dtype == torch.int32 else None


def edge_softmax(pattern: CSRPattern, dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float) -> Tensor:
    """See :func:`cagat.kernels.operators.edge_softmax`."""
    layout = _heads_layout(pattern, dst)
    if layout is None:
        return torch_products.edge_softmax(pattern, dst, src, edge, negative_slope)
    out = dst.new_empty(pattern.num_entries, layout.padded_heads)
    _softmax_pass(_rows_alone(pattern, False), layout, *_padded(layout, dst, src, edge), negative_slope, out)
    return layout.unpadded(out)


def edge_softmax_backward(
    pattern: CSRPattern,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`edge_softmax` at ``dst``, at ``src`` and at ``edge``."""
    layout = _heads_layout(pattern, dst)
    if layout is None:
        return torch_products.edge_softmax_backward(pattern, dst, src, edge, negative_slope, softmax, grad)
    gradients = [dst.new_empty(like.size(0), layout.padded_heads) for like in (dst, src, softmax)]
    grad_dst, grad_src, grad_logit = gradients
    logits, values = _padded(layout, dst, src, edge), (layout.values(softmax), layout.values(grad))
    _softmax_backward_pass(pattern, layout, *logits, negative_slope, *values, grad_logit, grad_dst, grad_src)
    return layout.unpadded(grad_dst), layout.unpadded(grad_src), layout.unpadded(grad_logit)


def _padded(layout: RowLayout, dst: Tensor, src: Tensor, edge: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    return layout.values(dst), layout.values(src), None if edge is None else layout.values(edge)


@cache
def _edge_diffusion(heads: int) -> compiled:
    """A loop for values of so many heads, a power of two, which are one vector of lanes.

    With a number of heads that is known only when it runs, and with indices that might be negative, it would take much
    longer.
    """
    H = heads

    @compiled
    def edge_diffusion(
        rowptr: Any,
        col: Any,
        left_rowptr: Any,
        left_col: Any,
        left_weight: Any,
        values: Any,
        out: Any,
        start: int,
        stop: int,
    ) -> None:
        """``out = L S L^T`` at the entries of S, where L is ``Abar`` or its transpose."""
        D = values.dtype.type
        # Row i of L S. It is cleared entry by entry, so that a row costs its own entries and not all nodes.
        rows = np.zeros((len(rowptr) - 1, H), dtype=values.dtype)
        row, S, result = rows.ctypes.data, values.ctypes.data, out.ctypes.data
        pointers, columns = rowptr.ctypes.data, col.ctypes.data
        left_pointers, left_columns, weight = left_rowptr.ctypes.data, left_col.ctypes.data, left_weight.ctypes.data
        for i in range(start, stop):
            first, end = index(pointers, i), index(pointers, i + 1)
            if first == end:
                continue
            left_first, left_end = index(left_pointers, i), index(left_pointers, i + 1)
            for f in range(left_first, left_end):
                p, w = index(left_columns, f), tile(load(weight, f, D, 1), H)
                for e in range(index(pointers, p), index(pointers, p + 1)):
                    q = index(columns, e) * H
                    store(row, q, multiply_add(w, load(S, e * H, D, H), load(row, q, D, H)))
            for e in range(first, end):
                j, total = index(columns, e), zeros(D, H)
                for f in range(index(left_pointers, j), index(left_pointers, j + 1)):
                    other = load(row, index(left_columns, f) * H, D, H)
                    total = multiply_add(tile(load(weight, f, D, 1), H), other, total)
                store(result, e * H, total)
            for f in range(left_first, left_end):
                p = index(left_columns, f)
                for e in range(index(pointers, p), index(pointers, p + 1)):
                    store(row, index(columns, e) * H, zeros(D, H))
        keep_alive(rows)

    return edge_diffusion


def edge_diffusion(pattern: CSRPattern, weights: list[Tensor], values: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.edge_diffusion`."""
    layout = _heads_layout(pattern, values)
    if layout is None:
        return torch_products.edge_diffusion(pattern, weights, values, transpose)
    padded, left = layout.values(values), _rows_alone(pattern, transpose)
    out, loop = torch.empty_like(padded), _edge_diffusion(layout.padded_heads)
    # Both passes over a row visit its neighbours' entries, so an entry costs about the mean degree.
    degree = 1 + pattern.num_entries // max(1, pattern.num_rows)
    width = 2 * degree * layout.padded_heads
    _run(loop, pattern.rowptr, pattern.col, left.rowptr, left.col, weights[transpose], padded, out, width=width)
    return layout.unpadded(out)


@numba.njit(inline="always")
def _hash(k: int, low: Any, high: Any) -> Any:
    """Twice the last part of MurmurHash3, a permutation of 32 bits in which every bit depends on every other."""
    h = np.uint32(np.uint32(k) ^ low)
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    h = np.uint32(h ^ (h >> np.uint32(16)) ^ high ^ np.uint32(k >> 32))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32(np.uint32(h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@compiled
def _dropout(
    x: Any, rows: Any, width: int, start: int, low: Any, high: Any, threshold: Any, scale: Any, out: Any
) -> None:
    """``scale x`` or zero, as the hash of an element's place in a larger matrix is above the threshold or not."""
    for r in range(x.shape[0]):
        first = np.int64(rows[r]) * width + start
        for c in range(x.shape[1]):
            # A product, so that NaN stays NaN even where it is dropped, as in torch.
            out[r, c] = x[r, c] * (scale if _hash(first + c, low, high) >= threshold else scale * 0)


def dropout(
    x: Tensor, seed: int, p: float, global_rows: Tensor | None = None, width: int | None = None, start: int = 0
) -> Tensor:
    """See :func:`cagat.kernels.operators.dropout`; the columns are those of a larger matrix from ``start`` on."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() == 0:
        return out
    # Without a larger matrix, all elements are one row of their own.
    rows = torch.zeros(1, dtype=torch.int64) if global_rows is None else global_rows
    flat, kept = _array(x).reshape(rows.numel(), -1), out.view(rows.numel(), -1).numpy()
    numbers = (np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32), np.uint32(round(p * 2**32)))
    columns = flat.shape[1] if width is None else width
    _dropout(flat, _array(rows), columns, start, *numbers, kept.dtype.type(1 / (1 - p)), kept)
    return out
