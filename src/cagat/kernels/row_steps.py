"""The steps of a row program, compiled: products on rows of lanes.

A row of features holds its channels, and each channel its heads, side by side: ``(n, channels, heads)``. What differs
from head to head is then a vector of heads that is repeated along the row (:func:`~cagat.kernels.lanes.tile`), and the
inner product of each head is a sum of such vectors (:func:`~cagat.kernels.lanes.fold`): neither needs a shuffle.
Rows are worked on in parts of ``L`` lanes, small enough for the sums to stay in registers.

Every step works on a range of rows and writes nothing that belongs to other rows, so the bits of a result depend
neither on the number of threads nor on who takes which rows.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from cagat.kernels.compiled import compiled
from cagat.kernels.lanes import compiled_as, fetch_add, fold, index, load, prefetch, read, store, tile, turned, zeros

# The feature row of the entry so many places further on is asked for early: on PubMed a product then takes a quarter
# less time, on Cora as much as before.
_AHEAD = 8


class Op(IntEnum):
    """What a step does, for each row i of its pattern; sums run over the entries e of the row, j is their column."""

    AGGREGATE = 0
    """``out[i] = sum_e (scale_x weight[e] x[j] + scale_y values[e] y[j]) + scale_add add[i]``"""
    AGGREGATE_TWICE = 1
    """``out[i] = scale_x sum_e weight[e] x[j]`` and ``out2[i] = scale_y sum_e values[e] x[j] + scale_add add[i]``"""
    INNER = 2
    """``out[e] = scale_x <x[i], y[j]> + scale_add add[e]``, for each head, and ``out2[e] += scale_y out[e]``"""
    COMBINE = 3
    """``out[i] = scale_x x[i] + scale_add add[i]``"""
    TO_ROWS = 4
    """``out[i]`` is ``x[i]``, with heads before channels there and channels before heads here; a row is one part"""
    FROM_ROWS = 5
    """The reverse of TO_ROWS"""


class Field(IntEnum):
    """The columns of the table of steps: numbers and addresses, where 0 stands for what a step does not have."""

    OP = 0
    WAIT = 1
    BLOCKS = 2
    BOUNDS = 3
    ROWPTR = 4
    COL = 5
    ORDER = 6
    WEIGHT = 7
    VALUES = 8
    X = 9
    Y = 10
    ADD = 11
    OUT = 12
    OUT2 = 13
    SCALE_X = 14
    SCALE_Y = 15
    SCALE_ADD = 16


_OP, _WAIT, _BLOCKS, _BOUNDS, _ROWPTR, _COL, _ORDER, _WEIGHT, _VALUES = (int(field) for field in list(Field)[:9])
_X, _Y, _ADD, _OUT, _OUT2, _SCALE_X, _SCALE_Y, _SCALE_ADD = (int(field) for field in list(Field)[9:17])
_AGGREGATE, _AGGREGATE_TWICE, _INNER, _COMBINE, _TO_ROWS, _FROM_ROWS = (int(op) for op in Op)


def _inlined(function: Callable[..., Any]) -> Any:
    """Make a function known to compiled code, which then keeps its constant arguments D, L and H constant."""
    compiled_as(function, lambda *arguments: function)
    return function


@_inlined
def _aggregate(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int) -> None:
    rowptr, col, order = step[_ROWPTR], step[_COL], step[_ORDER]
    weight, values, x, y, add, out = step[_WEIGHT], step[_VALUES], step[_X], step[_Y], step[_ADD], step[_OUT]
    scale_x, scale_y = load(step[_SCALE_X], 0, D, H), load(step[_SCALE_Y], 0, D, H)
    scale_add = tile(load(step[_SCALE_ADD], 0, D, H), L)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            total = zeros(D, L)
            if weight != 0 and values != 0:
                for e in range(first, end):
                    ahead, j = index(col, min(e + _AHEAD, last)) * width + part, index(col, e) * width + part
                    prefetch(x, ahead, D, L)
                    prefetch(y, ahead, D, L)
                    total += tile(tile(load(weight, e, D, 1), H) * scale_x, L) * load(x, j, D, L)
                    total += tile(load(values, e * H, D, H) * scale_y, L) * load(y, j, D, L)
            elif weight != 0:
                for e in range(first, end):
                    prefetch(x, index(col, min(e + _AHEAD, last)) * width + part, D, L)
                    total += tile(load(weight, e, D, 1), L) * load(x, index(col, e) * width + part, D, L)
                total = tile(scale_x, L) * total
            else:
                for e in range(first, end):
                    prefetch(y, index(col, min(e + _AHEAD, last)) * width + part, D, L)
                    place = e if order == 0 else index(order, e)
                    total += tile(load(values, place * H, D, H), L) * load(y, index(col, e) * width + part, D, L)
                total = tile(scale_y, L) * total
            if add != 0:
                total += scale_add * load(add, i * width + part, D, L)
            store(out, i * width + part, total)


@_inlined
def _aggregate_twice(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int) -> None:
    rowptr, col, order = step[_ROWPTR], step[_COL], step[_ORDER]
    weight, values, x, add, out, out2 = step[_WEIGHT], step[_VALUES], step[_X], step[_ADD], step[_OUT], step[_OUT2]
    scale_x, scale_y = tile(load(step[_SCALE_X], 0, D, H), L), tile(load(step[_SCALE_Y], 0, D, H), L)
    scale_add = tile(load(step[_SCALE_ADD], 0, D, H), L)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            shared, own = zeros(D, L), zeros(D, L)
            for e in range(first, end):
                prefetch(x, index(col, min(e + _AHEAD, last)) * width + part, D, L)
                row = load(x, index(col, e) * width + part, D, L)
                place = e if order == 0 else index(order, e)
                shared += tile(load(weight, e, D, 1), L) * row
                own += tile(load(values, place * H, D, H), L) * row
            own = scale_y * own
            if add != 0:
                own += scale_add * load(add, i * width + part, D, L)
            store(out, i * width + part, scale_x * shared)
            store(out2, i * width + part, own)


@_inlined
def _inner(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int) -> None:
    rowptr, col = step[_ROWPTR], step[_COL]
    x, y, add, out, out2 = step[_X], step[_Y], step[_ADD], step[_OUT], step[_OUT2]
    scale_x, scale_y = load(step[_SCALE_X], 0, D, H), load(step[_SCALE_Y], 0, D, H)
    scale_add = load(step[_SCALE_ADD], 0, D, H)
    for i in range(start, stop):
        own = load(x, i * width, D, L)
        for e in range(index(rowptr, i), index(rowptr, i + 1)):
            ahead, j = index(col, min(e + _AHEAD, last)) * width, index(col, e) * width
            prefetch(y, ahead, D, L)
            total = own * load(y, j, D, L)
            for part in range(L, width, L):
                prefetch(y, ahead + part, D, L)
                total += load(x, i * width + part, D, L) * load(y, j + part, D, L)
            product = scale_x * fold(total, H)
            if add != 0:
                product += scale_add * load(add, e * H, D, H)
            store(out, e * H, product)
            if out2 != 0:
                store(out2, e * H, load(out2, e * H, D, H) + scale_y * product)


@_inlined
def _combine(step: Any, start: int, stop: int, width: int, D: Any, L: int, H: int) -> None:
    x, add, out = step[_X], step[_ADD], step[_OUT]
    scale_x, scale_add = tile(load(step[_SCALE_X], 0, D, H), L), tile(load(step[_SCALE_ADD], 0, D, H), L)
    for place in range(start * width, stop * width, L):
        total = scale_x * load(x, place, D, L)
        if add != 0:
            total += scale_add * load(add, place, D, L)
        store(out, place, total)


@_inlined
def _turn(step: Any, start: int, stop: int, D: Any, L: int, columns: int) -> None:
    x, out = step[_X], step[_OUT]
    for place in range(start * L, stop * L, L):
        store(out, place, turned(load(x, place, D, L), columns))


@cache
def interpreter(dtype: type[np.floating[Any]], lanes: int, heads: int) -> Callable[..., None]:
    """What runs programs on rows in parts of ``lanes`` lanes, a multiple of ``heads``, both powers of two."""
    D, L, H = dtype, lanes, heads
    # The step with two sums has half the lanes for each, so that both fit into sixteen registers.
    L2 = max(H, L // 2)
    C = L // H

    def run(steps: Any, counters: int, width: int, last: int) -> None:
        """Take part in all steps. The counters, two a step, say how many blocks are taken and how many are done."""
        first_unfinished = 0
        for s in range(len(steps)):
            step = steps[s]
            blocks, bounds = step[_BLOCKS], step[_BOUNDS]
            while True:
                block = fetch_add(counters, 2 * s, 1)
                if block >= blocks:
                    break
                start, stop = index(bounds, block), index(bounds, block + 1)
                if step[_OP] == _AGGREGATE:
                    _aggregate(step, start, stop, width, last, D, L, H)
                elif step[_OP] == _AGGREGATE_TWICE:
                    _aggregate_twice(step, start, stop, width, last, D, L2, H)
                elif step[_OP] == _INNER:
                    _inner(step, start, stop, width, last, D, L, H)
                elif step[_OP] == _COMBINE:
                    _combine(step, start, stop, width, D, L, H)
                elif step[_OP] == _TO_ROWS:
                    _turn(step, start, stop, D, L, C)
                else:
                    _turn(step, start, stop, D, L, H)
                fetch_add(counters, 2 * s + 1, 1)
            if step[_WAIT] != 0:
                # Only blocks that somebody has taken are waited for: nobody has to come and help.
                while first_unfinished <= s:
                    if read(counters, 2 * first_unfinished + 1) == steps[first_unfinished, _BLOCKS]:
                        first_unfinished += 1

    return compiled(run)
