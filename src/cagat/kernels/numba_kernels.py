"""The compiled loops. Each works on the rows ``start`` to ``stop`` and writes nothing that belongs to other rows.

The arrays are those of :class:`~cagat.kernels.csr_pattern.CSRPattern`, contiguous. Heads and channels are the last
dimensions, so that the innermost loops run over adjacent numbers and become vector instructions.
"""

from typing import Any

import numba
import numpy as np

from cagat.kernels.compiled import compiled


@compiled
def spmm(rowptr: Any, col: Any, weight: Any, x: Any, out: Any, start: int, stop: int) -> None:
    """``out[i] = sum_j weight_ij x[j]``, one weight for all columns of ``x``."""
    width = x.shape[1]
    for i in range(start, stop):
        for c in range(width):
            out[i, c] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            w = weight[e]
            for c in range(width):
                out[i, c] += w * x[j, c]


@compiled
def spmm_heads(rowptr: Any, col: Any, values: Any, x: Any, out: Any, start: int, stop: int) -> None:
    """``out[i, h] = sum_j values_ij[h] x[j, h]``."""
    heads, channels = x.shape[1], x.shape[2]
    for i in range(start, stop):
        for h in range(heads):
            for c in range(channels):
                out[i, h, c] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            j = col[e]
            for h in range(heads):
                v = values[e, h]
                for c in range(channels):
                    out[i, h, c] += v * x[j, h, c]


@compiled
def spmm_heads_t(rowptr_t: Any, col_t: Any, perm_t: Any, values: Any, x: Any, out: Any, start: int, stop: int) -> None:
    """``out[j, h] = sum_i values_ij[h] x[i, h]``, the values in the order of the matrix itself."""
    heads, channels = x.shape[1], x.shape[2]
    for j in range(start, stop):
        for h in range(heads):
            for c in range(channels):
                out[j, h, c] = 0
        for t in range(rowptr_t[j], rowptr_t[j + 1]):
            i = col_t[t]
            e = perm_t[t]
            for h in range(heads):
                v = values[e, h]
                for c in range(channels):
                    out[j, h, c] += v * x[i, h, c]


@compiled
def sddmm_heads(rowptr: Any, col: Any, a: Any, b: Any, out: Any, start: int, stop: int) -> None:
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
def dropout(x: Any, low: Any, high: Any, threshold: Any, scale: Any, out: Any, start: int, stop: int) -> None:
    """``out[k]`` is ``scale x[k]`` or zero, as the hash of k and of two seeds is above the threshold or not."""
    for k in range(start, stop):
        # A product, so that NaN stays NaN even where it is dropped, as in torch.
        out[k] = x[k] * (scale if _hash(k, low, high) >= threshold else scale * 0)


@compiled
def dropout_rows(
    x: Any,
    global_rows: Any,
    width: int,
    low: Any,
    high: Any,
    threshold: Any,
    scale: Any,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """As :func:`dropout`, where row r of ``x`` begins with row ``global_rows[r]`` of a larger matrix of this width."""
    for r in range(start, stop):
        first = np.int64(global_rows[r]) * width
        for c in range(x.shape[1]):
            out[r, c] = x[r, c] * (scale if _hash(first + c, low, high) >= threshold else scale * 0)
