"""The steps that compiled passes are made of: products on rows of lanes, shared out among all threads.

A row of features holds its channels, and each channel its heads, side by side. What differs from head to head is then
a vector of heads that is repeated along the row (:func:`~cagat.kernels.simd.tile`), and the inner product of each head
is a sum of such vectors (:func:`~cagat.kernels.simd.fold`): neither needs a shuffle. Rows are cut into parts of ``L``
lanes, small enough for the sums to stay in registers; a step works on one part of all its rows after the other.

All threads call a step. Each takes blocks of rows until none is left, and goes on when all blocks are done. A row is
written by one thread and summed in one order, so the bits of a result do not depend on the number of threads.

Every step takes the address of its two counters and returns that of the next step's. ``D`` is the dtype, ``H`` the
number of heads, both lanes and heads powers of two, and ``A`` the prefetch distance: they are constants of the machine
code. ``scale_*`` are addresses of vectors of heads, all else that is not a number is an address, too, and 0 stands for
what is absent. Sums run over the entries e of a row i, and j is their column.
"""

from typing import Any, NamedTuple

from cagat.kernels.simd import (
    exp,
    fetch_add,
    fold,
    index,
    inlined,
    load,
    load_heads,
    pause,
    prefetch,
    read,
    select,
    step,
    store,
    store_heads,
    tile,
    yield_core,
    zeros,
)

_LESS, _NOT_MORE = 0, 1
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
    """

    blocks: int
    bounds: int
    rowptr: int
    col: int
    order: int
    weight: int
    last: int


class Parts(NamedTuple):
    """How rows lie in memory: the number of their parts, and the distances from row to row and from part to part."""

    number: int
    row: int
    part: int


@inlined
def _take(counters: int) -> Any:
    """The next block for this thread."""
    return fetch_add(counters, 0, 1)


@inlined
def _done(counters: int) -> Any:
    """Say that a block is done, and take the next."""
    fetch_add(counters, 1, 1)
    return fetch_add(counters, 0, 1)


@inlined
def _wait(counters: int, blocks: int) -> int:
    """Wait until all blocks are done. Somebody has taken each, so nobody has to come and help."""
    spins = 0
    while read(counters, 1) < blocks:
        spins += 1
        pause()
        if spins > _SPINS:  # Whoever holds a block perhaps waits for this very core.
            yield_core()
    return counters + 16


@inlined
def _place(parts: Any, piece: int, L: int, P: int) -> Any:
    """Where pieces of P lanes begin, of which a part of L lanes has one or more."""
    return piece // (L // P) * parts.part + piece % (L // P) * P


@step
def aggregate(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, A: int, x: int, scale_x: int, values: int, y: int,
    scale_y: int, add: int, scale_add: int, out: int,
) -> int:  # fmt: skip
    """``out[i] = sum_e (scale_x weight[e] x[j] + scale_y values[e] y[j]) + scale_add add[i]``; x or values may be 0."""
    rowptr, col, order, weight, last = side.rowptr, side.col, side.order, side.weight, side.last
    block = _take(counters)
    while block < side.blocks:
        by_x, by_y, by_add = load(scale_x, 0, D, H), load(scale_y, 0, D, H), tile(load(scale_add, 0, D, H), L)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for part in range(parts.number):
            base = part * parts.part
            for i in range(start, stop):
                total = zeros(D, L)
                first, end = index(rowptr, i), index(rowptr, i + 1)
                if x != 0 and values != 0:
                    for e in range(first, end):
                        later, j = index(col, min(e + A, last)) * parts.row + base, index(col, e) * parts.row + base
                        prefetch(x, later, D, L, A)
                        prefetch(y, later, D, L, A)
                        total += tile(tile(load(weight, e, D, 1), H) * by_x, L) * load(x, j, D, L)
                        total += tile(load(values, e * H, D, H) * by_y, L) * load(y, j, D, L)
                elif x != 0:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        total += tile(load(weight, e, D, 1), L) * load(x, index(col, e) * parts.row + base, D, L)
                    total = tile(by_x, L) * total
                else:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        place = e
                        if order != 0:
                            prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                            place = index(order, e)
                        value = tile(load(values, place * H, D, H), L)
                        total += value * load(y, index(col, e) * parts.row + base, D, L)
                    total = tile(by_y, L) * total
                if add != 0:
                    total += by_add * load(add, i * parts.row + base, D, L)
                store(out, i * parts.row + base, total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def aggregate_twice(
    counters: int, side: Any, parts: Any, D: Any, L: int, P: int, H: int, A: int, x: int, values: int,
    scale_values: int, add: int, scale_add: int, out: int, out_values: int,
) -> int:  # fmt: skip
    """``out[i] = sum_e weight[e] x[j]``, ``out_values[i] = scale_values sum_e values[e] x[j] + scale_add add[i]``."""
    rowptr, col, weight, last = side.rowptr, side.col, side.weight, side.last
    block = _take(counters)
    while block < side.blocks:
        by_values, by_add = tile(load(scale_values, 0, D, H), P), tile(load(scale_add, 0, D, H), P)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for piece in range(parts.number * (L // P)):
            base = _place(parts, piece, L, P)
            for i in range(start, stop):
                shared, own = zeros(D, P), zeros(D, P)
                for e in range(index(rowptr, i), index(rowptr, i + 1)):
                    prefetch(x, index(col, min(e + A, last)) * parts.row + base, D, P, A)
                    row = load(x, index(col, e) * parts.row + base, D, P)
                    shared += tile(load(weight, e, D, 1), P) * row
                    own += tile(load(values, e * H, D, H), P) * row
                own = by_values * own
                if add != 0:
                    own += by_add * load(add, i * parts.row + base, D, P)
                store(out, i * parts.row + base, shared)
                store(out_values, i * parts.row + base, own)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def aggregate_inner(
    counters: int, side: Any, parts: Any, D: Any, L: int, P: int, H: int, A: int, x: int, scale_x: int, y: int,
    values: int, scale_values: int, add: int, out: int, out_values: int, products: int, dots: int, dots_level: int,
    level: int,
) -> int:  # fmt: skip
    """The gradient of a product, reading x once.

    ``out[i] = scale_x sum_e weight[e] x[j]``, if it is wanted, ``out_values[i] = own + add[i]`` with
    ``own = scale_values sum_e values[e] x[j]``, and ``products[e] += <x[j], y[i]>``. If they are wanted,
    ``dots[i] += <own, y[i]>`` and ``dots_level[i] += level <own, y[i]>``, where ``level`` is a vector of heads.
    """
    rowptr, col, order, weight, last = side.rowptr, side.col, side.order, side.weight, side.last
    block = _take(counters)
    while block < side.blocks:
        by_x, by_values = tile(load(scale_x, 0, D, H), P), tile(load(scale_values, 0, D, H), P)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for piece in range(parts.number * (L // P)):
            base = _place(parts, piece, L, P)
            for i in range(start, stop):
                first, end = index(rowptr, i), index(rowptr, i + 1)
                shared, own, mine = zeros(D, P), zeros(D, P), load(y, i * parts.row + base, D, P)
                if out != 0:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * parts.row + base, D, P, A)
                        row = load(x, index(col, e) * parts.row + base, D, P)
                        shared += tile(load(weight, e, D, 1), P) * row
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        own += tile(load(values, index(order, e) * H, D, H), P) * row
                        store(products, e * H, load(products, e * H, D, H) + fold(mine * row, H))
                    store(out, i * parts.row + base, by_x * shared)
                else:
                    for e in range(first, end):
                        prefetch(x, index(col, min(e + A, last)) * parts.row + base, D, P, A)
                        row = load(x, index(col, e) * parts.row + base, D, P)
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        own += tile(load(values, index(order, e) * H, D, H), P) * row
                        store(products, e * H, load(products, e * H, D, H) + fold(mine * row, H))
                own = by_values * own
                if dots != 0:
                    dot = fold(own * mine, H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                    store(dots_level, i * H, load(dots_level, i * H, D, H) + load(level, 0, D, H) * dot)
                if add != 0:
                    own += load(add, i * parts.row + base, D, P)
                store(out_values, i * parts.row + base, own)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def aggregate_both(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, A: int, values: int, y: int, scale: int, add: int,
    out: int, dots: int, other: Any, other_values: int,
) -> int:  # fmt: skip
    """``out = scale ([values] + [values]^T) y + add``, and ``dots[i] += <the sum, y[i]>`` if they are wanted.

    The side is that of the transpose, and so is the order of the values. If the pattern is not symmetric, the other
    side and the values in its order are needed, else ``other_values`` is 0.
    """
    rowptr, col, order, last = side.rowptr, side.col, side.order, side.last
    block = _take(counters)
    while block < side.blocks:
        by_sum = tile(load(scale, 0, D, H), L)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for part in range(parts.number):
            base = part * parts.part
            for i in range(start, stop):
                total = zeros(D, L)
                if other_values == 0:
                    for e in range(index(rowptr, i), index(rowptr, i + 1)):
                        prefetch(y, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        value = load(values, e * H, D, H) + load(values, index(order, e) * H, D, H)
                        total += tile(value, L) * load(y, index(col, e) * parts.row + base, D, L)
                else:
                    for e in range(index(rowptr, i), index(rowptr, i + 1)):
                        value = tile(load(values, e * H, D, H), L)
                        total += value * load(y, index(col, e) * parts.row + base, D, L)
                    for e in range(index(other.rowptr, i), index(other.rowptr, i + 1)):
                        value = tile(load(other_values, e * H, D, H), L)
                        total += value * load(y, index(other.col, e) * parts.row + base, D, L)
                if dots != 0:
                    dot = fold(total * load(y, i * parts.row + base, D, L), H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                total = by_sum * total
                if add != 0:
                    total += load(add, i * parts.row + base, D, L)
                store(out, i * parts.row + base, total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def inner(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, A: int, x: int, y: int, scale: int, add: int,
    scale_add: int, out: int,
) -> int:  # fmt: skip
    """``out[e] = scale <x[i], y[j]> + scale_add add[e]``, for each head."""
    rowptr, col, last = side.rowptr, side.col, side.last
    block = _take(counters)
    while block < side.blocks:
        by_dot, by_add = load(scale, 0, D, H), load(scale_add, 0, D, H)
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for part in range(parts.number):
            base = part * parts.part
            for i in range(start, stop):
                own, first, end = load(x, i * parts.row + base, D, L), index(rowptr, i), index(rowptr, i + 1)
                # Which terms there are is asked once a row, and not at every entry.
                if part == 0 and add == 0:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * parts.row + base, D, L), H)
                        store(out, e * H, by_dot * dot)
                elif part == 0:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * parts.row + base, D, L), H)
                        store(out, e * H, by_dot * dot + by_add * load(add, e * H, D, H))
                else:
                    for e in range(first, end):
                        prefetch(y, index(col, min(e + A, last)) * parts.row + base, D, L, A)
                        dot = fold(own * load(y, index(col, e) * parts.row + base, D, L), H)
                        store(out, e * H, by_dot * dot + load(out, e * H, D, H))
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def split(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, x: int, scale_one: int, one: int, scale_other: int,
    other: int, adds: bool, dots: int, y: int,
) -> int:  # fmt: skip
    """``one[i] = scale_one x[i]``, ``other[i] = scale_other x[i]`` or added to it, and ``dots[i] += <x[i], y[i]>``."""
    block = _take(counters)
    while block < side.blocks:
        by_one, by_other = tile(load(scale_one, 0, D, H), L), tile(load(scale_other, 0, D, H), L)
        for part in range(parts.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                place = i * parts.row + part * parts.part
                row = load(x, place, D, L)
                if dots != 0:
                    store(dots, i * H, load(dots, i * H, D, H) + fold(row * load(y, place, D, L), H))
                store(one, place, by_one * row)
                rest = by_other * row
                if adds:
                    rest += load(other, place, D, L)
                store(other, place, rest)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def to_rows(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, features: int, channels: int, nodes: int, out: int
) -> int:
    """Row i is laid out from the features of node ``nodes[i]``, where heads come before channels."""
    block = _take(counters)
    while block < side.blocks:
        for part in range(parts.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                place = index(nodes, i) * channels * H + part * (L // H)
                row = load_heads(features, place, channels, D, L, H)
                store(out, i * parts.row + part * parts.part, row)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def from_rows(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, rows: int, channels: int, nodes: int, out: int
) -> int:
    """The reverse of :func:`to_rows`."""
    block = _take(counters)
    while block < side.blocks:
        for part in range(parts.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                row = load(rows, i * parts.row + part * parts.part, D, L)
                store_heads(out, index(nodes, i) * channels * H + part * (L // H), channels, row, H)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def pick(counters: int, side: Any, D: Any, H: int, values: int, entries: int, out: int) -> int:
    """``out[e] = values[entries[e]]``, vectors of heads."""
    block = _take(counters)
    while block < side.blocks:
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for e in range(index(side.rowptr, start), index(side.rowptr, stop)):
            store(out, e * H, load(values, index(entries, e) * H, D, H))
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def place(counters: int, side: Any, D: Any, H: int, values: int, entries: int, out: int) -> int:
    """The reverse of :func:`pick`: ``out[entries[e]] = values[e]``."""
    block = _take(counters)
    while block < side.blocks:
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for e in range(index(side.rowptr, start), index(side.rowptr, stop)):
            store(out, index(entries, e) * H, load(values, e * H, D, H))
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def attention_gradient(
    counters: int, side: Any, D: Any, H: int, direct: int, by_rounds: int, rounds: int, distance: int, scale: int,
    G: int, out: int, dots: int,
) -> int:  # fmt: skip
    """``out[order[e]] = direct[e] + scale b`` with b the sum of ``by_rounds`` over the rounds.

    And ``dots[i] += b G[order[e]]``, if they are wanted. The rounds' values are ``distance`` numbers apart.
    """
    block = _take(counters)
    while block < side.blocks:
        by_sum = load(scale, 0, D, H)
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            dot = zeros(D, H)
            for e in range(index(side.rowptr, i), index(side.rowptr, i + 1)):
                total, place = zeros(D, H), index(side.order, e) * H
                for r in range(rounds):
                    total += load(by_rounds, r * distance + e * H, D, H)
                dot += total * load(G, place, D, H)
                store(out, place, load(direct, e * H, D, H) + by_sum * total)
            if dots != 0:
                store(dots, i * H, load(dots, i * H, D, H) + dot)
        block = _done(counters)
    return _wait(counters, side.blocks)


@inlined
def _logit(side: Any, own: Any, e: int, src: int, edge: int, D: Any, H: int, A: int) -> Any:
    """The logit of an entry before LeakyReLU."""
    prefetch(src, index(side.col, min(e + A, side.last)) * H, D, H, A)
    logit = own + load(src, index(side.col, e) * H, D, H)
    if edge != 0:
        logit += load(edge, e * H, D, H)
    return logit


@step
def logits(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, x: int, att_dst: int, att_src: int, dst: int,
    src: int,
) -> int:  # fmt: skip
    """``dst[i] = <x[i], att_dst>`` and ``src[i] = <x[i], att_src>``, for each head; the weights are rows."""
    block = _take(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            to_dst, to_src = zeros(D, H), zeros(D, H)
            for part in range(parts.number):
                row = load(x, i * parts.row + part * parts.part, D, L)
                to_dst += fold(row * load(att_dst, part * L, D, L), H)
                to_src += fold(row * load(att_src, part * L, D, L), H)
            store(dst, i * H, to_dst)
            store(src, i * H, to_src)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def add_logits(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, dst: int, src: int, att_dst: int, att_src: int,
    out: int,
) -> int:  # fmt: skip
    """The transpose of :func:`logits`: ``out[i] += dst[i] att_dst + src[i] att_src``."""
    block = _take(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            at_dst, at_src = tile(load(dst, i * H, D, H), L), tile(load(src, i * H, D, H), L)
            for part in range(parts.number):
                spot = i * parts.row + part * parts.part
                total = at_dst * load(att_dst, part * L, D, L) + at_src * load(att_src, part * L, D, L)
                store(out, spot, load(out, spot, D, L) + total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def softmax(
    counters: int, side: Any, D: Any, H: int, A: int, dst: int, src: int, edge: int, slope: int, out: int
) -> int:
    """``out[e] = softmax_e LeakyReLU(dst[i] + src[j] + edge[e])``, vectors of heads."""
    block = _take(counters)
    while block < side.blocks:
        by_slope, zero = load(slope, 0, D, H), zeros(D, H)
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            first, end, own = index(side.rowptr, i), index(side.rowptr, i + 1), load(dst, i * H, D, H)
            peak, total = zeros(D, H), zeros(D, H)
            for e in range(first, end):
                logit = _logit(side, own, e, src, edge, D, H, A)
                logit = select(_LESS, logit, zero, by_slope * logit, logit)
                store(out, e * H, logit)
                if e == first:
                    peak = logit
                peak = select(_LESS, peak, logit, logit, peak)
            for e in range(first, end):
                power = exp(load(out, e * H, D, H) - peak)
                store(out, e * H, power)
                total += power
            for e in range(first, end):
                store(out, e * H, load(out, e * H, D, H) / total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def softmax_backward(
    counters: int, side: Any, D: Any, H: int, A: int, dst: int, src: int, edge: int, slope: int, softmax: int,
    grad: int, grad_logit: int, grad_dst: int,
) -> int:  # fmt: skip
    """``grad_logit[e]``, the gradient at the logits before LeakyReLU, and ``grad_dst[i]``, its sum."""
    block = _take(counters)
    while block < side.blocks:
        by_slope, zero = load(slope, 0, D, H), zeros(D, H)
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            first, end, own = index(side.rowptr, i), index(side.rowptr, i + 1), load(dst, i * H, D, H)
            mean, total = zeros(D, H), zeros(D, H)
            for e in range(first, end):
                mean += load(softmax, e * H, D, H) * load(grad, e * H, D, H)
            for e in range(first, end):
                at_logit = load(softmax, e * H, D, H) * (load(grad, e * H, D, H) - mean)
                # At zero the slope is that of torch's leaky_relu.
                logit = _logit(side, own, e, src, edge, D, H, A)
                at_logit = select(_NOT_MORE, logit, zero, by_slope * at_logit, at_logit)
                store(grad_logit, e * H, at_logit)
                total += at_logit
            store(grad_dst, i * H, total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def sums(counters: int, side: Any, D: Any, H: int, A: int, values: int, out: int) -> int:
    """``out[i] = sum_e values[order[e]]``, vectors of heads."""
    block = _take(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            total = zeros(D, H)
            for e in range(index(side.rowptr, i), index(side.rowptr, i + 1)):
                prefetch(values, index(side.order, min(e + A, side.last)) * H, D, H, A)
                total += load(values, index(side.order, e) * H, D, H)
            store(out, i * H, total)
        block = _done(counters)
    return _wait(counters, side.blocks)


@step
def gram(
    counters: int, parts: Any, D: Any, L: int, H: int, nodes: int, height: int, x: int, y: int, channels: int, out: int
) -> int:
    """``x^T y`` for each head, summed over blocks of ``height`` rows: ``out[block, c, d] = sum_i x[i, c] y[i, d]``.

    The blocks are the same however many threads there are, and so are the sums over them.
    """
    blocks = (nodes + height - 1) // height
    block = _take(counters)
    while block < blocks:
        for c in range(channels):
            own = c // (L // H) * parts.part + c % (L // H) * H
            for part in range(parts.number):
                total = zeros(D, L)
                for i in range(block * height, min(nodes, (block + 1) * height)):
                    row = load(y, i * parts.row + part * parts.part, D, L)
                    total += tile(load(x, i * parts.row + own, D, H), L) * row
                store(out, (block * channels + c) * parts.number * L + part * L, total)
        block = _done(counters)
    return _wait(counters, blocks)


@step
def sum_gram(
    counters: int, D: Any, H: int, nodes: int, height: int, channels: int, blocks: int, out: int, transpose: int
) -> int:
    """The sum of the ``blocks`` that :func:`gram` made, and its transpose."""
    block = _take(counters)
    while block < 1:
        for c in range(channels):
            for d in range(channels):
                total = zeros(D, H)
                for b in range((nodes + height - 1) // height):
                    total += load(blocks, ((b * channels + c) * channels + d) * H, D, H)
                store(out, (c * channels + d) * H, total)
                store(transpose, (d * channels + c) * H, total)
        block = _done(counters)
    return _wait(counters, 1)


@step
def add_gram_product(
    counters: int, side: Any, parts: Any, D: Any, L: int, H: int, x: int, gram: int, channels: int, scale: int,
    out: int, y: int, dots: int, dots_level: int, level: int,
) -> int:  # fmt: skip
    """``out[i] += own`` with ``own = scale sum_c x[i, c] gram[c]``; dots as in :func:`aggregate_inner`."""
    block = _take(counters)
    while block < side.blocks:
        by_sum = tile(load(scale, 0, D, H), L)
        for part in range(parts.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                total, spot = zeros(D, L), i * parts.row + part * parts.part
                for c in range(channels):
                    own = i * parts.row + c // (L // H) * parts.part + c % (L // H) * H
                    total += tile(load(x, own, D, H), L) * load(gram, c * channels * H + part * L, D, L)
                total = by_sum * total
                if dots != 0:
                    dot = fold(total * load(y, spot, D, L), H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                    store(dots_level, i * H, load(dots_level, i * H, D, H) + load(level, 0, D, H) * dot)
                store(out, spot, load(out, spot, D, L) + total)
        block = _done(counters)
    return _wait(counters, side.blocks)
