"""Calling compiled passes over a sparse pattern.

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

from cagat.kernels.compiled import CFunction
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.exchange import Calls, Exchange
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.simd import FAR, NEAR, inlined, unpack
from cagat.kernels.steps import Panels, Side
from cagat.kernels.threads import balanced_bounds, kernel_threads, number_of_blocks, row_threads

_NUMPY_TYPES: dict[torch.dtype, type[np.floating[Any]]] = {torch.float32: np.float32, torch.float64: np.float64}

# Smaller than that of a product called by itself: within a pass threads wait in compiled code, and are awake.
_SMALLEST_BLOCK = 50_000

# Where a panel of all rows takes more than this, it comes from main memory, or as good as (docs/explanation/speed.md).
CACHED_BYTES = 2**23

# Where things stand in the block of a pass.
_COLUMNS, _PANELS, OWN = 8, 16, 19


class Constants(NamedTuple):
    """What machine code is made for.

    Attributes:
        D: The dtype.
        L: The lanes of a panel of a row.
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
        by_panels: Whether the first panels of all rows come first, then the second ones, ...; else each row is whole.
        exchange: What exchanges rows and values, if the graph is in parts.
    """

    def __init__(
        self,
        pattern: CSRPattern,
        weights: tuple[Tensor, Tensor] | None,
        layout: RowLayout,
        by_panels: bool = True,
        exchange: Exchange | None = None,
    ) -> None:
        self.pattern, self.layout, self.is_symmetric = pattern, layout, pattern.is_symmetric
        self._kept: list[Any] = [pattern, weights]
        self._told: list[Any] = []
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
        panels = Panels(layout.panels, lanes, held * lanes) if by_panels else Panels(layout.panels, layout.width, lanes)
        self._common = (*rows, *columns, *panels)
        self._most_blocks = max(blocks, transposed[0])
        size = layout.dtype.itemsize
        gathered = max(held, pattern.num_cols) * (lanes if by_panels else layout.width) * size
        # In steps with two sums both must fit into the registers, beside the row that they are made of.
        piece = max(layout.padded_heads, min(lanes, _bytes_of_two_sums() // 2 // size))
        distance = FAR if gathered > CACHED_BYTES else NEAR
        self.constants = Constants(_NUMPY_TYPES[layout.dtype], lanes, piece, layout.padded_heads, distance)

    def address(self, tensor: Tensor | None) -> int:
        """Where a tensor is, which is kept until the next pass is over; 0 for none."""
        if tensor is None:
            return 0
        assert tensor.is_contiguous()
        self._told.append(tensor)
        return tensor.data_ptr() or 1  # One that is empty has no address, but is not absent; nobody reads there.

    def scales(self, *coefficients: float | NDArray[Any]) -> list[int]:
        """The addresses of vectors of heads, given as such or all as numbers; kept likewise."""
        vectors = np.zeros((len(coefficients), self.layout.padded_heads), dtype=_NUMPY_TYPES[self.layout.dtype])
        vectors[:, : self.layout.heads] = np.array(coefficients).reshape(len(coefficients), -1)
        self._told.append(vectors)
        first, step = vectors.ctypes.data, vectors.strides[0]
        return [first + number * step for number in range(len(vectors))]

    def run(self, make: Pass, arguments: tuple[int, ...], steps: int = 1, calls: Calls | None = None) -> None:
        """Run a pass of at most so many steps; the first of its arguments are the counters, which are made here.

        If it calls others, each step may be done in two halves, with two exchanges after each, or be one by itself.
        """
        most = steps * (1 if calls is None else 8)
        counters = np.zeros(2 * (most + 1), dtype=np.int64)
        block = np.array([*self._common, counters.ctypes.data, *arguments[1:]], dtype=np.int64)
        alive = (self._kept, self._told, counters, block)
        row_threads.together(make(self.constants), block.ctypes.data, min(self._threads, self._most_blocks), alive)
        self._told = []  # What only this pass worked with is free for the next one.
        assert counters[-2] == counters[-1] == 0, f"a pass took more than {most} steps"
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
    return unpack(address, 0, Side), unpack(address, _COLUMNS, Side), unpack(address, _PANELS, Panels)
