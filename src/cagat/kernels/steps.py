"""The steps that compiled passes are made of: products on rows of lanes, shared out among all threads.

A row of features holds its channels, and each channel its heads, side by side. What differs from head to head is then
a vector of heads that is repeated along the row (:func:`~cagat.kernels.simd.tile`), and the inner product of each head
is a sum of such vectors (:func:`~cagat.kernels.simd.fold`): neither needs a shuffle. Rows are cut into panels of ``L``
lanes, small enough for the sums to stay in registers; a step works on one panel of all its rows after the other.

All threads call a step. Each takes blocks of rows until none is left, and goes on when all blocks are done. A row is
written by one thread and summed in one order, so the bits of a result do not depend on the number of threads.

Every step takes the address of its two counters and returns that of the next step's. ``D`` is the dtype, ``H`` the
number of heads, both lanes and heads powers of two, and ``A`` the prefetch distance: they are constants of the machine
code. ``scale_*`` are addresses of vectors of heads, all else that is not a number is an address, too, and 0 stands for
what is absent. Sums run over the entries e of a row i, and j is their column.
"""

from typing import Any, NamedTuple

from cagat.kernels.simd import (
    call,
    fetch_add,
    fold,
    index,
    inlined,
    load,
    load_heads,
    multiply_add,
    pause,
    prefetch,
    read,
    step,
    store,
    store_heads,
    tile,
    yield_core,
    zeros,
)

# About as long as a block of rows takes.
_SPINS = 2_000


class Side(NamedTuple):
    """A sparse matrix by rows, or its transpose.

    Attributes:
        blocks: The number of blocks of rows that threads take.
        bounds: Their first rows, and the end of the last.
        rowptr: The first entry of each row.
        col: The column of each entry.
        order: Where the value of each entry stands, if not in the order of the entries.
        weight: The values of Abar, in the order of the entries.
        last: The number of the last entry.
        outer: The number of blocks of rows that other processes need, which come first; all blocks of a whole graph.
    """

    blocks: int
    bounds: int
    rowptr: int
    col: int
    order: int
    weight: int
    last: int
    outer: int


class Panels(NamedTuple):
    """How rows lie in memory: the number of their panels, and the distances from row to row and from panel to panel."""

    number: int
    row: int
    panel: int


@inlined
def take_block(counters: int) -> Any:
    """The next block for this thread."""
    return fetch_add(counters, 0, 1)


@inlined
def next_block(counters: int) -> Any:
    """Say that a block is done, and take the next."""
    fetch_add(counters, 1, 1)
    return fetch_add(counters, 0, 1)


@inlined
def wait_for_all(counters: int, blocks: int) -> int:
    """Wait until all blocks are done. Somebody has taken each, so nobody has to come and help."""
    spins = 0
    while read(counters, 1) < blocks:
        spins += 1
        pause()
        if spins > _SPINS:  # Whoever holds a block perhaps waits for this very core.
            yield_core()
    return counters + 16


@inlined
def half_of(side: Any, half: int) -> Any:
    """The rows that other processes need (half 0), or those that they do not (half 1)."""
    first, blocks = 0, side.outer
    if half > 0:
        first, blocks = side.outer, side.blocks - side.outer
    bounds = side.bounds + 4 * first
    return Side(blocks, bounds, side.rowptr, side.col, side.order, side.weight, side.last, blocks)


@step
def exchange(counters: int, function: int, what: int, address: int) -> int:
    """Let one thread call what exchanges rows or values with other processes (:mod:`cagat.kernels.exchange`)."""
    block = take_block(counters)
    while block < 1:
        call(function, what, address)
        block = next_block(counters)
    return wait_for_all(counters, 1)


@inlined
def _offset(panels: Any, piece: int, L: int, P: int) -> Any:
    """Where pieces of P lanes begin, of which a panel of L lanes has one or more."""
    return piece // (L // P) * panels.panel + piece % (L // P) * P


@step
def aggregate(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, A: int, x: int, scale_x: int, values: int, y: int,
    scale_y: int, add: int, scale_add: int, out: int,
) -> int:  # fmt: skip
    """``out[i] = sum_e (scale_x weight[e] x[j] + scale_y values[e] y[j]) + scale_add add[i]``; x or values may be 0."""
    rowptr, col, order, weight, last = side.rowptr, side.col, side.order, side.weight, side.last
    block = take_block(counters)
    while block < side.blocks:
        by_x, by_y, by_add = load(scale_x, 0, D, H), load(scale_y, 0, D, H), tile(load(scale_add, 0, D, H), L)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for panel in range(panels.number):
            base = panel * panels.panel
            for i in range(start, stop):
                total = zeros(D, L)
                first, end = index(rowptr, i), index(rowptr, i + 1)
                if x != 0 and values != 0:
                    for e in range(first, end):
                        later, j = index(col, min(e + A, last)) * panels.row + base, index(col, e) * panels.row + base
                        prefetch(x, later, D, L, A)
                        prefetch(y, later, D, L, A)
                        total = multiply_add(tile(tile(load(weight, e, D, 1), H) * by_x, L), load(x, j, D, L), total)
                        total = multiply_add(tile(load(values, e * H, D, H) * by_y, L), load(y, j, D, L), total)
                elif x != 0:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        row = load(x, index(col, e) * panels.row + base, D, L)
                        total = multiply_add(tile(load(weight, e, D, 1), L), row, total)
                    total = tile(by_x, L) * total
                else:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        entry = e
                        if order != 0:
                            prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                            entry = index(order, e)
                        value = tile(load(values, entry * H, D, H), L)
                        total = multiply_add(value, load(y, index(col, e) * panels.row + base, D, L), total)
                    total = tile(by_y, L) * total
                if add != 0:
                    total = multiply_add(by_add, load(add, i * panels.row + base, D, L), total)
                store(out, i * panels.row + base, total)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def aggregate_twice(
    counters: int, side: Any, panels: Any, D: Any, L: int, P: int, H: int, A: int, x: int, values: int,
    scale_values: int, add: int, scale_add: int, out: int, out_values: int,
) -> int:  # fmt: skip
    """``out[i] = sum_e weight[e] x[j]``, ``out_values[i] = scale_values sum_e values[e] x[j] + scale_add add[i]``."""
    rowptr, col, weight, last = side.rowptr, side.col, side.weight, side.last
    block = take_block(counters)
    while block < side.blocks:
        by_values, by_add = tile(load(scale_values, 0, D, H), P), tile(load(scale_add, 0, D, H), P)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for piece in range(panels.number * (L // P)):
            base = _offset(panels, piece, L, P)
            for i in range(start, stop):
                shared, own = zeros(D, P), zeros(D, P)
                for e in range(index(rowptr, i), index(rowptr, i + 1)):
                    prefetch(x, index(col, min(e + A, last)) * panels.row + base, D, P, A)
                    row = load(x, index(col, e) * panels.row + base, D, P)
                    shared = multiply_add(tile(load(weight, e, D, 1), P), row, shared)
                    own = multiply_add(tile(load(values, e * H, D, H), P), row, own)
                own = by_values * own
                if add != 0:
                    own = multiply_add(by_add, load(add, i * panels.row + base, D, P), own)
                store(out, i * panels.row + base, shared)
                store(out_values, i * panels.row + base, own)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def aggregate_inner(
    counters: int, side: Any, panels: Any, D: Any, L: int, P: int, H: int, A: int, x: int, scale_x: int, y: int,
    values: int, scale_values: int, add: int, out: int, out_values: int, products: int, dots: int, dots_level: int,
    level: int,
) -> int:  # fmt: skip
    """The gradient of a product, reading x once.

    ``out[i] = scale_x sum_e weight[e] x[j]``, if it is wanted, ``out_values[i] = own + add[i]`` with
    ``own = scale_values sum_e values[e] x[j]``, and ``products[e] += <x[j], y[i]>``. If they are wanted,
    ``dots[i] += <own, y[i]>`` and ``dots_level[i] += level <own, y[i]>``, where ``level`` is a vector of heads.
    """
    rowptr, col, order, weight, last = side.rowptr, side.col, side.order, side.weight, side.last
    block = take_block(counters)
    while block < side.blocks:
        by_x, by_values = tile(load(scale_x, 0, D, H), P), tile(load(scale_values, 0, D, H), P)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for piece in range(panels.number * (L // P)):
            base = _offset(panels, piece, L, P)
            for i in range(start, stop):
                first, end = index(rowptr, i), index(rowptr, i + 1)
                shared, own, mine = zeros(D, P), zeros(D, P), load(y, i * panels.row + base, D, P)
                if out != 0:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * panels.row + base, D, P, A)
                        row = load(x, index(col, e) * panels.row + base, D, P)
                        shared = multiply_add(tile(load(weight, e, D, 1), P), row, shared)
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        own = multiply_add(tile(load(values, index(order, e) * H, D, H), P), row, own)
                        store(products, e * H, load(products, e * H, D, H) + fold(mine * row, H))
                    store(out, i * panels.row + base, by_x * shared)
                else:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * panels.row + base, D, P, A)
                        row = load(x, index(col, e) * panels.row + base, D, P)
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        own = multiply_add(tile(load(values, index(order, e) * H, D, H), P), row, own)
                        store(products, e * H, load(products, e * H, D, H) + fold(mine * row, H))
                own = by_values * own
                if dots != 0:
                    dot = fold(own * mine, H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                    store(dots_level, i * H, multiply_add(load(level, 0, D, H), dot, load(dots_level, i * H, D, H)))
                if add != 0:
                    own += load(add, i * panels.row + base, D, P)
                store(out_values, i * panels.row + base, own)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def aggregate_both(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, A: int, values: int, y: int, scale: int, add: int,
    out: int, dots: int, other: Any, other_values: int,
) -> int:  # fmt: skip
    """``out = scale ([values] + [values]^T) y + add``, and ``dots[i] += <the sum, y[i]>`` if they are wanted.

    The side is that of the transpose, and so is the order of the values. If the pattern is not symmetric or in parts,
    the other side and the values in its order are needed, else ``other_values`` is 0.
    """
    rowptr, col, order, last = side.rowptr, side.col, side.order, side.last
    block = take_block(counters)
    while block < side.blocks:
        by_sum = tile(load(scale, 0, D, H), L)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for panel in range(panels.number):
            base = panel * panels.panel
            for i in range(start, stop):
                total = zeros(D, L)
                if other_values == 0:
                    for e in range(index(rowptr, i), index(rowptr, i + 1)):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        value = load(values, e * H, D, H) + load(values, index(order, e) * H, D, H)
                        total = multiply_add(tile(value, L), load(y, index(col, e) * panels.row + base, D, L), total)
                elif other.col == col:  # Entries and their mirror images are in the same positions.
                    for e in range(index(rowptr, i), index(rowptr, i + 1)):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        value = load(values, e * H, D, H) + load(other_values, e * H, D, H)
                        total = multiply_add(tile(value, L), load(y, index(col, e) * panels.row + base, D, L), total)
                else:
                    for e in range(index(rowptr, i), index(rowptr, i + 1)):
                        value = tile(load(values, e * H, D, H), L)
                        total = multiply_add(value, load(y, index(col, e) * panels.row + base, D, L), total)
                    for e in range(index(other.rowptr, i), index(other.rowptr, i + 1)):
                        value = tile(load(other_values, e * H, D, H), L)
                        total = multiply_add(value, load(y, index(other.col, e) * panels.row + base, D, L), total)
                if dots != 0:
                    dot = fold(total * load(y, i * panels.row + base, D, L), H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                total = by_sum * total
                if add != 0:
                    total += load(add, i * panels.row + base, D, L)
                store(out, i * panels.row + base, total)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def inner(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, A: int, x: int, y: int, scale: int, add: int,
    scale_add: int, out: int,
) -> int:  # fmt: skip
    """``out[e] = scale <x[i], y[j]> + scale_add add[e]``, for each head."""
    rowptr, col, last = side.rowptr, side.col, side.last
    block = take_block(counters)
    while block < side.blocks:
        by_dot, by_add = load(scale, 0, D, H), load(scale_add, 0, D, H)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for panel in range(panels.number):
            base = panel * panels.panel
            for i in range(start, stop):
                own, first, end = load(x, i * panels.row + base, D, L), index(rowptr, i), index(rowptr, i + 1)
                # Which terms there are is asked once a row, and not at every entry.
                if panel == 0 and add == 0:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * panels.row + base, D, L), H)
                        store(out, e * H, by_dot * dot)
                elif panel == 0:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * panels.row + base, D, L), H)
                        store(out, e * H, multiply_add(by_add, load(add, e * H, D, H), by_dot * dot))
                else:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * panels.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * panels.row + base, D, L), H)
                        store(out, e * H, multiply_add(by_dot, dot, load(out, e * H, D, H)))
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def split(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, x: int, scale_one: int, one: int, scale_other: int,
    other: int, adds: bool, dots: int, y: int,
) -> int:  # fmt: skip
    """``one[i] = scale_one x[i]``, ``other[i] = scale_other x[i]`` or added to it, and ``dots[i] += <x[i], y[i]>``."""
    block = take_block(counters)
    while block < side.blocks:
        by_one, by_other = tile(load(scale_one, 0, D, H), L), tile(load(scale_other, 0, D, H), L)
        for panel in range(panels.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                offset = i * panels.row + panel * panels.panel
                row = load(x, offset, D, L)
                if dots != 0:
                    store(dots, i * H, load(dots, i * H, D, H) + fold(row * load(y, offset, D, L), H))
                store(one, offset, by_one * row)
                rest = by_other * row
                if adds:
                    rest += load(other, offset, D, L)
                store(other, offset, rest)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def to_rows(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, features: int, channels: int, nodes: int, out: int
) -> int:
    """Row i is laid out from the features of node ``nodes[i]``, where heads come before channels."""
    block = take_block(counters)
    while block < side.blocks:
        for panel in range(panels.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                offset = index(nodes, i) * channels * H + panel * (L // H)
                row = load_heads(features, offset, channels, D, L, H)
                store(out, i * panels.row + panel * panels.panel, row)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def from_rows(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, rows: int, channels: int, nodes: int, out: int
) -> int:
    """The reverse of :func:`to_rows`."""
    block = take_block(counters)
    while block < side.blocks:
        for panel in range(panels.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                row = load(rows, i * panels.row + panel * panels.panel, D, L)
                store_heads(out, index(nodes, i) * channels * H + panel * (L // H), channels, row, H)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)
