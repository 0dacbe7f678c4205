"""The compiled loops of :mod:`cagat.models.infomax_objective`.

Rows are parts of lanes (:mod:`cagat.kernels.lanes`), and memory is told by addresses. A loop works on a range of blocks
of rows, or of rows, and writes nothing that belongs to others.
"""

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types

from cagat.kernels.compiled import compiled
from cagat.kernels.lanes import FAR, chosen, fold, index, inlined, intrinsic, keep, load, prefetch, store, tile, zeros

LANES = 64
"""Rows are worked on in parts of so many channels, of which there must be a multiple."""

BLOCK = 256
"""Sums over rows are made of those over blocks of so many, so that their bits do not depend on the threads."""

# That of torch_geometric.nn.models.deep_graph_infomax, which keeps logarithms finite.
_EPS = 1e-15


def _bits(builder: Any, arguments: Any, count: int) -> Any:
    """Where the bits of ``count`` lanes from an offset on are."""
    byte = builder.lshr(arguments[1], ir.Constant(ir.IntType(64), 3))
    return builder.inttoptr(builder.add(arguments[0], byte), ir.IntType(count).as_pointer())


@intrinsic
def _store_signs(context: Any, address: Any, offset: Any, lanes: Any) -> Any:
    """Write a bit for each lane that says whether it is positive."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = ir.Constant(target.get_value_type(lanes), [0.0] * lanes.count)
        positive = builder.fcmp_ordered(">", arguments[2], nothing)
        bits = builder.bitcast(positive, ir.IntType(lanes.count))
        builder.store(bits, _bits(builder, arguments, lanes.count), align=1)
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, lanes), generate


@intrinsic
def _where_positive(context: Any, address: Any, offset: Any, lanes: Any) -> Any:
    """The lanes whose bit is set, and zero in place of the others."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.load(_bits(builder, arguments, lanes.count), align=1)
        is_set = builder.bitcast(bits, ir.VectorType(ir.IntType(1), lanes.count))
        nothing = ir.Constant(target.get_value_type(lanes), [0.0] * lanes.count)
        return builder.select(is_set, arguments[2], nothing)

    return lanes(types.int64, types.int64, lanes), generate


# Sums must not be reordered here: of 1 - p + EPS, EPS would be lost, and it is what keeps the logarithm finite.
@numba.njit(nogil=True, fastmath=False, error_model="numpy")
def _verdict(score: float, is_real: bool, D: Any) -> tuple[float, float]:  # pragma: no cover
    """The loss of a node with this score and its derivative, in PyG's words."""
    p = D(1) / (D(1) + math.exp(-score))
    right = (p if is_real else D(1) - p) + D(_EPS)
    slant = p * (D(1) - p) / right
    return -math.log(right), -slant if is_real else slant


@inlined
def _gather(
    rowptr: int, col: int, value: int, z: int, bias: int, last: int, i: int, part: int, width: int, D: Any
) -> Any:
    """A part of the row i of ``A Z + b``."""
    total = load(bias, part, D, LANES)
    for e in range(index(rowptr, i), index(rowptr, i + 1)):
        prefetch(z, index(col, min(e + FAR, last)) * width + part, D, LANES, FAR)
        total += tile(load(value, e, D, 1), LANES) * load(z, index(col, e) * width + part, D, LANES)
    return total


@inlined
def _add_to(sums: int, place: int, lanes: Any, D: Any) -> None:
    store(sums, place, load(sums, place, D, LANES) + lanes)


@inlined
def _add_row(sums: int, row: int, gate: Any, width: int, D: Any) -> None:
    """Add a row, times a number, to the sums of what is positive and of what is not, and the number where it is."""
    nothing = zeros(D, LANES)
    for part in range(0, width, LANES):
        h = load(row, part, D, LANES)
        # NaN is not positive, and must not get lost.
        above = chosen(0, nothing, h, h, nothing)
        _add_to(sums, part, gate * above, D)
        _add_to(sums, width + part, gate * (h - above), D)
        _add_to(sums, 2 * width + part, chosen(0, nothing, h, gate, nothing), D)


@inlined
def _clear(sums: int, width: int, D: Any) -> None:
    for part in range(0, 3 * width, LANES):
        store(sums, part, zeros(D, LANES))


@compiled
def encode(
    rowptr: int,
    col: int,
    value: int,
    z: int,
    bias: int,
    last: int,
    hidden: int,
    signs: int,
    sums: int,
    n: int,
    width: int,
    D: Any,
    start: int,
    stop: int,
) -> None:
    """``hidden = A Z + b``, its signs, and its sums over the rows of each block."""
    ones = np.ones(1, dtype=D)
    one, size = tile(load(np.int64(ones.ctypes.data), 0, D, 1), LANES), ones.itemsize
    for block in range(start, stop):
        mine = sums + 3 * block * width * size
        _clear(mine, width, D)
        for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
            for part in range(0, width, LANES):
                h = _gather(rowptr, col, value, z, bias, last, i, part, width, D)
                store(hidden, i * width + part, h)
                _store_signs(signs, i * width + part, h)
            _add_row(mine, hidden + i * width * size, one, width, D)


@compiled
def judge(
    hidden: int,
    v: int,
    slope: int,
    gates: Any,
    losses: Any,
    sums: int,
    n: int,
    width: int,
    D: Any,
    start: int,
    stop: int,
) -> None:
    """The loss of each node, its gradient at the node's score, and the sums of the rows times this."""
    score, gate = np.empty(1, dtype=D), np.int64(gates.ctypes.data)
    a, nothing, size = tile(load(slope, 0, D, 1), LANES), zeros(D, LANES), score.itemsize
    for block in range(start, stop):
        mine = sums + 3 * block * width * size
        _clear(mine, width, D)
        for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
            total = zeros(D, LANES)
            for part in range(0, width, LANES):
                h = load(hidden, i * width + part, D, LANES)
                total += load(v, part, D, LANES) * chosen(0, nothing, h, h, a * h)
            store(np.int64(score.ctypes.data), 0, fold(total, 1))
            losses[i], slant = _verdict(score[0], True, D)
            gates[i] = slant / D(n)
            _add_row(mine, hidden + i * width * size, tile(load(gate, i, D, 1), LANES), width, D)


@compiled
def judge_shuffled(
    rowptr: int,
    col: int,
    value: int,
    z: int,
    bias: int,
    last: int,
    signs: int,
    v: int,
    slope: int,
    gates: Any,
    losses: Any,
    sums: int,
    n: int,
    width: int,
    D: Any,
    start: int,
    stop: int,
) -> None:
    """As :func:`encode` and :func:`judge`, for nodes that should be found wanting, with rows that nobody keeps."""
    score, gate = np.empty(1, dtype=D), np.int64(gates.ctypes.data)
    a, nothing, size = tile(load(slope, 0, D, 1), LANES), zeros(D, LANES), score.itemsize
    kept = np.empty(width, dtype=D)
    row = np.int64(kept.ctypes.data)
    for block in range(start, stop):
        mine = sums + 3 * block * width * size
        _clear(mine, width, D)
        for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
            total = zeros(D, LANES)
            for part in range(0, width, LANES):
                h = _gather(rowptr, col, value, z, bias, last, i, part, width, D)
                store(row, part, h)
                _store_signs(signs, i * width + part, h)
                total += load(v, part, D, LANES) * chosen(0, nothing, h, h, a * h)
            store(np.int64(score.ctypes.data), 0, fold(total, 1))
            losses[i], slant = _verdict(score[0], False, D)
            gates[i] = slant / D(n)
            _add_row(mine, row, tile(load(gate, i, D, 1), LANES), width, D)
    keep(kept)


@compiled
def hand_down(
    rowptr: int,
    col: int,
    value: Any,
    back: Any,
    signs: int,
    signs_shuffled: int,
    gates: Any,
    gates_shuffled: Any,
    v: int,
    shared: int,
    slope: Any,
    out: int,
    longest: int,
    width: int,
    D: Any,
    start: int,
    stop: int,
) -> None:
    """The gradient at Z, by the rows of the transpose: at a node as itself, and as the one that it was taken for.

    At the entry (k, i) it is ``value (gate_i v + shared)`` where i is positive, and the slope times that elsewhere.
    """
    factors, ends = np.empty(3 * longest, dtype=D), np.empty(3, dtype=D)
    factor, end = np.int64(factors.ctypes.data), np.int64(ends.ctypes.data)
    ends[2] = D(1) - slope[0]
    rest = tile(load(end, 2, D, 1), LANES)
    for k in range(start, stop):
        first, last = index(rowptr, k), index(rowptr, k + 1)
        first_shuffled, last_shuffled = index(rowptr, back[k]), index(rowptr, back[k] + 1)
        ends[0], ends[1] = 0, 0
        for e in range(first, last):
            w = value[e]
            factors[e - first], factors[longest + e - first] = w * gates[index(col, e)], w
            ends[0] += factors[e - first]
            ends[1] += w
        for e in range(first_shuffled, last_shuffled):
            at = 2 * longest + e - first_shuffled
            factors[at] = value[e] * gates_shuffled[index(col, e)]
            ends[0] += factors[at]
        ends[0] *= slope[0]
        ends[1] *= slope[0]
        for part in range(0, width, LANES):
            times_v, times_shared = zeros(D, LANES), zeros(D, LANES)
            for e in range(first, last):
                bits = index(col, e) * width + part
                times_v += _where_positive(signs, bits, tile(load(factor, e - first, D, 1), LANES))
                times_shared += _where_positive(signs, bits, tile(load(factor, longest + e - first, D, 1), LANES))
            for e in range(first_shuffled, last_shuffled):
                at = tile(load(factor, 2 * longest + e - first_shuffled, D, 1), LANES)
                times_v += _where_positive(signs_shuffled, index(col, e) * width + part, at)
            row = load(v, part, D, LANES) * (tile(load(end, 0, D, 1), LANES) + rest * times_v)
            row += load(shared, part, D, LANES) * (tile(load(end, 1, D, 1), LANES) + rest * times_shared)
            store(out, k * width + part, row)
