"""The compiled loop of a diffusion step that stays on the edges."""

import inspect
import zlib
from functools import cache
from typing import Any

import numpy as np

from cagat.kernels import compiled as compiled_module
from cagat.kernels import lanes as lanes_module
from cagat.kernels.compiled import compiled
from cagat.kernels.lanes import index, keep, load, store, tile, zeros


@cache
def edge_diffusion_loop(heads: int) -> compiled:
    """A loop for values of so many heads, a power of two, which are one vector of lanes.

    With a number of heads that is known only when it runs, and with indices that might be negative, it would take much
    longer.
    """
    H = heads
    # numba keeps compiled code until this file changes; what it calls is in others, whose text it is told here.
    sources = _fingerprint()

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
        rows = np.zeros((len(rowptr) - 1 + (sources - sources), H), dtype=values.dtype)
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
                    store(row, q, load(row, q, D, H) + w * load(S, e * H, D, H))
            for e in range(first, end):
                j, total = index(columns, e), zeros(D, H)
                for f in range(index(left_pointers, j), index(left_pointers, j + 1)):
                    total += load(row, index(left_columns, f) * H, D, H) * tile(load(weight, f, D, 1), H)
                store(result, e * H, total)
            for f in range(left_first, left_end):
                p = index(left_columns, f)
                for e in range(index(pointers, p), index(pointers, p + 1)):
                    store(row, index(columns, e) * H, zeros(D, H))
        keep(rows)

    return edge_diffusion


@cache
def _fingerprint() -> int:
    return zlib.crc32("".join(map(inspect.getsource, (compiled_module, lanes_module))).encode())
