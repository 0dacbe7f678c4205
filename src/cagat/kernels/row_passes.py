"""Calling compiled passes over a sparse pattern, and the passes of single products.

A pass is compiled code that all threads enter together. It is made of :mod:`~cagat.kernels.steps` and takes one block
of numbers and addresses: what every pass needs, then its own arguments by name.
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_features
from numpy.typing import NDArray
from torch import Tensor

from cagat.kernels import attention_steps, steps
from cagat.kernels.compiled import CFunction, compiled_for_c
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.exchange import SEND_VECTORS, VALUES, WAIT, Calls, Exchange
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.simd import FAR, NEAR, inlined, unpack
from cagat.kernels.steps import Parts, Side, half_of
from cagat.kernels.threads import balanced_bounds, kernel_threads, number_of_blocks, row_threads

_NUMPY_TYPES: dict[torch.dtype, type[np.floating[Any]]] = {torch.float32: np.float32, torch.float64: np.float64}

# Smaller than that of a product called by itself: within a pass threads wait in compiled code, and are awake.
_SMALLEST_BLOCK = 50_000

# Where a part of all rows takes more than this, it comes from main memory, or as good as (docs/explanation/speed.md).
CACHED_BYTES = 2**23

# Where things stand in the block of a pass.
_COLUMNS, _PARTS, OWN = 8, 16, 19


class Constants(NamedTuple):
    """What machine code is made for.

    Attributes:
        D: The dtype.
        L: The lanes of a part of a row.
        P: The lanes of a piece, in steps with two sums.
        H: The number of heads, padded.
        A: The prefetch distance.
    """

    D: type[np.floating[Any]]
    L: int
    P: int
    H: int
    A: int


Pass = Callable[[Constants], CFunction]


class RowPasses:
    """Runs passes on one pattern and one layout of rows.

    Args:
        pattern: Where the entries are.
        weights: The values of Abar in the order of the entries and of the transpose's entries, if there are any.
        layout: How the features lie in their rows.
        by_parts: Whether the first parts of all rows come first, then the second ones, ...; else each row is whole.
        exchange: What exchanges rows and values, if the graph is in parts.
    """

    def __init__(
        self,
        pattern: CSRPattern,
        weights: tuple[Tensor, Tensor] | None,
        layout: RowLayout,
        by_parts: bool = True,
        exchange: Exchange | None = None,
    ) -> None:
        self.pattern, self.layout, self.is_symmetric = pattern, layout, pattern.is_symmetric
        self._kept: list[Any] = [pattern, weights]
        self._threads = kernel_threads()
        last, last_t = (max(0, col.numel() - 1) for col in (pattern.col, pattern.col_t))
        blocks, bounds, outer = self._blocks(pattern.rowptr, exchange)
        transposed = (blocks, bounds, outer) if self.is_symmetric else self._blocks(pattern.rowptr_t, exchange)
        held = pattern.num_rows + (0 if exchange is None else exchange.halo)
        weight, weight_t = (0, 0) if weights is None else (weights[0].data_ptr(), weights[1].data_ptr())
        rows = Side(blocks, bounds, pattern.rowptr.data_ptr(), pattern.col.data_ptr(), 0, weight, last, outer)
        columns = Side(
            *(*transposed[:2], pattern.rowptr_t.data_ptr(), pattern.col_t.data_ptr()),
            *(pattern.perm_t.data_ptr(), weight_t, last_t, transposed[2]),
        )
        lanes = layout.lanes
        parts = Parts(layout.parts, lanes, held * lanes) if by_parts else Parts(layout.parts, layout.width, lanes)
        self._common = (*rows, *columns, *parts)
        self._most_blocks = max(blocks, transposed[0])
        size = layout.dtype.itemsize
        gathered = max(held, pattern.num_cols) * (lanes if by_parts else layout.width) * size
        # In steps with two sums both must fit into the registers, beside the row that they are made of.
        piece = max(layout.padded_heads, min(lanes, _bytes_of_two_sums() // 2 // size))
        distance = FAR if gathered > CACHED_BYTES else NEAR
        self.constants = Constants(_NUMPY_TYPES[layout.dtype], lanes, piece, layout.padded_heads, distance)

    def address(self, tensor: Tensor | None) -> int:
        """Where a tensor is, which is kept until this object is gone; 0 for none."""
        if tensor is None:
            return 0
        assert tensor.is_contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()

    def scales(self, *coefficients: float | NDArray[Any]) -> list[int]:
        """The addresses of vectors of heads, given as such or all as numbers."""
        vectors = np.zeros((len(coefficients), self.layout.padded_heads), dtype=_NUMPY_TYPES[self.layout.dtype])
        vectors[:, : self.layout.heads] = np.array(coefficients).reshape(len(coefficients), -1)
        self._kept.append(vectors)
        first, step = vectors.ctypes.data, vectors.strides[0]
        return [first + number * step for number in range(len(vectors))]

    def run(self, make: Pass, arguments: tuple[int, ...], steps: int = 1, calls: Calls | None = None) -> None:
        """Run a pass of at most so many steps; the first of its arguments are the counters, which are made here.

        If it calls others, each step may be done in two halves, with two exchanges after each, or be one by itself.
        """
        most = steps * (1 if calls is None else 8)
        counters = np.zeros(2 * (most + 1), dtype=np.int64)
        block = np.array([*self._common, counters.ctypes.data, *arguments[1:]], dtype=np.int64)
        keep = (self._kept, counters, block)
        row_threads.together(make(self.constants), block.ctypes.data, min(self._threads, self._most_blocks), keep)
        assert not counters[-2:].any(), f"a pass took more than {most} steps"
        if calls is not None:
            calls.check()

    def _blocks(self, rowptr: Tensor, exchange: Exchange | None) -> tuple[int, int, int]:
        """The number of blocks of rows, the address of their bounds, and how many of them come first."""
        pointers = rowptr.numpy()
        blocks, found = [], [0]
        for start, stop in pairwise([0, *([] if exchange is None else [exchange.outer]), len(pointers) - 1]):
            half = pointers[start : stop + 1] - pointers[start]
            blocks.append(number_of_blocks(half, self.layout.width, self._threads, _SMALLEST_BLOCK))
            found += [start + bound for bound in balanced_bounds(half, blocks[-1])[1:]]
        bounds = np.array(found, dtype=np.int32)
        self._kept.append(bounds)
        return sum(blocks), bounds.ctypes.data, blocks[0]


@cache
def _bytes_of_two_sums() -> int:
    """Half of the registers: there are 32 with AVX-512, of up to 64 bytes, else sixteen, of up to 32."""
    return 512 if get_host_cpu_features().get("avx512vl", False) else 256


@inlined
def operands(address: Any) -> Any:
    """The matrix by rows, its transpose, and how features lie in memory."""
    return unpack(address, 0, Side), unpack(address, _COLUMNS, Side), unpack(address, _PARTS, Parts)


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
        rows, columns, parts = operands(address)
        p = unpack(address, OWN, _Aggregate)
        side = columns if p.transpose else rows
        steps.aggregate(
            p.counters, side, parts, D, L, H, A, x=p.x, scale_x=p.scale, values=p.values, y=p.y, scale_y=p.scale,
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
    is_shared, place, (by_product, by_add) = values is None, passes.address(x), passes.scales(scale, scale_add)
    arguments = _Aggregate(
        transpose=transpose, scale=by_product, scale_add=by_add, x=place if is_shared else 0,
        values=passes.address(values), y=0 if is_shared else place, add=passes.address(add), out=passes.address(out),
    )  # fmt: skip
    passes.run(_aggregate, arguments)


def softmax(
    pattern: CSRPattern, layout: RowLayout, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float, out: Tensor
) -> None:
    """GAT's attention ``out`` at the entries, of logits that are vectors of heads."""
    passes = RowPasses(pattern, None, layout)
    arguments = _softmax_arguments(passes, dst, src, edge, slope)
    passes.run(_softmax, arguments._replace(softmax=passes.address(out)))


def softmax_backward(
    pattern: CSRPattern, layout: RowLayout, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float,
    softmax: Tensor, grad: Tensor, grad_logit: Tensor, grad_dst: Tensor, grad_src: Tensor,
) -> None:  # fmt: skip
    """The gradients of :func:`softmax` at the logits of the entries, at ``dst`` and at ``src``."""
    passes = RowPasses(pattern, None, layout)
    arguments = _softmax_arguments(passes, dst, src, edge, slope)._replace(
        softmax=passes.address(softmax), grad=passes.address(grad), grad_logit=passes.address(grad_logit),
        grad_dst=passes.address(grad_dst), grad_src=passes.address(grad_src),
    )  # fmt: skip
    passes.run(_softmax_backward, arguments, steps=2)


def _softmax_arguments(passes: RowPasses, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float) -> _Softmax:
    logits = (passes.address(tensor) for tensor in (dst, src, edge))
    return _Softmax(0, *logits, *passes.scales(slope))


class Attend(NamedTuple):
    """Addresses and numbers for :func:`attend` and :func:`attend_backward`."""

    counters: int = 0
    channels: int = 0
    order: int = 0
    Z: int = 0
    rows: int = 0
    att_dst: int = 0
    att_src: int = 0
    slope: int = 0
    dst: int = 0
    src: int = 0
    softmax: int = 0
    grad: int = 0
    grad_logit: int = 0
    grad_dst: int = 0
    grad_src: int = 0
    out: int = 0
    exchange: int = 0
    halves: int = 1


@cache
def attend(constants: Constants) -> CFunction:
    """GAT's attention between features: rows are laid out, and their logits and the softmax are made."""
    D, L, _, H, A = constants

    def run(address: Any) -> None:
        side, _, parts = operands(address)
        p = unpack(address, OWN, Attend)
        c = p.counters
        if p.Z:
            c = steps.to_rows(c, side, parts, D, L, H, features=p.Z, channels=p.channels, nodes=p.order, out=p.rows)
        for half in range(p.halves):
            c = attention_steps.logits(
                c, half_of(side, half), parts, D, L, H, x=p.rows, att_dst=p.att_dst, att_src=p.att_src, dst=p.dst,
                src=p.src,
            )  # fmt: skip
            if p.exchange:
                c = steps.exchange(c, p.exchange, WAIT if half > 0 else SEND_VECTORS, p.src)
        attention_steps.softmax(c, side, D, H, A, dst=p.dst, src=p.src, edge=0, slope=p.slope, out=p.softmax)

    return compiled_for_c(run)


@cache
def attend_backward(constants: Constants) -> CFunction:
    """The gradient of :func:`attend`, added to that of the rows."""
    D, L, _, H, A = constants

    def run(address: Any) -> None:
        side, columns, parts = operands(address)
        p = unpack(address, OWN, Attend)
        c = attention_steps.softmax_backward(
            p.counters, side, D, H, A, dst=p.dst, src=p.src, edge=0, slope=p.slope, softmax=p.softmax, grad=p.grad,
            grad_logit=p.grad_logit, grad_dst=p.grad_dst,
        )  # fmt: skip
        if p.exchange:
            c = steps.exchange(c, p.exchange, VALUES, p.grad_logit)
        c = attention_steps.sums(c, columns, D, H, A, values=p.grad_logit, out=p.grad_src)
        c = attention_steps.add_logits(
            c, side, parts, D, L, H, dst=p.grad_dst, src=p.grad_src, att_dst=p.att_dst, att_src=p.att_src, out=p.rows
        )
        if p.out:
            steps.from_rows(c, side, parts, D, L, H, rows=p.rows, channels=p.channels, nodes=p.order, out=p.out)

    return compiled_for_c(run)
