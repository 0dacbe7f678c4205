"""The steps of a row program, compiled: products on rows of lanes.

A row of features holds its channels, and each channel its heads, side by side: ``(n, channels, heads)``. What differs
from head to head is then a vector of heads that is repeated along the row (:func:`~cagat.kernels.lanes.tile`), and the
inner product of each head is a sum of such vectors (:func:`~cagat.kernels.lanes.fold`): neither needs a shuffle.
Rows are worked on in parts of ``L`` lanes, small enough for the sums to stay in registers.

Every step works on a range of rows and writes nothing that belongs to other rows, so the bits of a result depend
neither on the number of threads nor on who takes which rows.
"""

from typing import Any

from cagat.kernels import row_table as table
from cagat.kernels.lanes import fold, index, inlined, load, prefetch, store, tile, turned, zeros

# Where rows are gathered, that of the entry ``A`` places further on is asked for beforehand.


@inlined
def aggregate(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.AGGREGATE`."""
    rowptr, col, order = step[table.ROWPTR], step[table.COL], step[table.ORDER]
    weight, values, x, y, add, out = (
        step[table.WEIGHT],
        step[table.VALUES],
        step[table.X],
        step[table.Y],
        step[table.ADD],
        step[table.OUT],
    )
    scale_x, scale_y = load(step[table.SCALE_X], 0, D, H), load(step[table.SCALE_Y], 0, D, H)
    scale_add = tile(load(step[table.SCALE_ADD], 0, D, H), L)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            total = zeros(D, L)
            if weight != 0 and values != 0:
                for e in range(first, end):
                    later, j = index(col, min(e + A, last)) * width + part, index(col, e) * width + part
                    prefetch(x, later, D, L, A)
                    prefetch(y, later, D, L, A)
                    total += tile(tile(load(weight, e, D, 1), H) * scale_x, L) * load(x, j, D, L)
                    total += tile(load(values, e * H, D, H) * scale_y, L) * load(y, j, D, L)
            elif weight != 0:
                for e in range(first, end):
                    prefetch(x, index(col, min(e + A, last)) * width + part, D, L, A)
                    total += tile(load(weight, e, D, 1), L) * load(x, index(col, e) * width + part, D, L)
                total = tile(scale_x, L) * total
            else:
                for e in range(first, end):
                    prefetch(y, index(col, min(e + A, last)) * width + part, D, L, A)
                    place = e
                    if order != 0:
                        prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                        place = index(order, e)
                    total += tile(load(values, place * H, D, H), L) * load(y, index(col, e) * width + part, D, L)
                total = tile(scale_y, L) * total
            if add != 0:
                total += scale_add * load(add, i * width + part, D, L)
            store(out, i * width + part, total)


@inlined
def aggregate_twice(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.AGGREGATE_TWICE`."""
    rowptr, col = step[table.ROWPTR], step[table.COL]
    weight, values, x, add, out, out2 = (
        step[table.WEIGHT],
        step[table.VALUES],
        step[table.X],
        step[table.ADD],
        step[table.OUT],
        step[table.OUT2],
    )
    scale_x, scale_y = tile(load(step[table.SCALE_X], 0, D, H), L), tile(load(step[table.SCALE_Y], 0, D, H), L)
    scale_add = tile(load(step[table.SCALE_ADD], 0, D, H), L)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            shared, own = zeros(D, L), zeros(D, L)
            for e in range(first, end):
                prefetch(x, index(col, min(e + A, last)) * width + part, D, L, A)
                row = load(x, index(col, e) * width + part, D, L)
                shared += tile(load(weight, e, D, 1), L) * row
                own += tile(load(values, e * H, D, H), L) * row
            own = scale_y * own
            if add != 0:
                own += scale_add * load(add, i * width + part, D, L)
            store(out, i * width + part, scale_x * shared)
            store(out2, i * width + part, own)


@inlined
def aggregate_inner(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.AGGREGATE_INNER`."""
    rowptr, col, order = step[table.ROWPTR], step[table.COL], step[table.ORDER]
    weight, values, x, y, add, out, out2, products = (
        step[table.WEIGHT],
        step[table.VALUES],
        step[table.X],
        step[table.Y],
        step[table.ADD],
        step[table.OUT],
        step[table.OUT2],
        step[table.PRODUCTS],
    )
    scale_x, scale_y = tile(load(step[table.SCALE_X], 0, D, H), L), tile(load(step[table.SCALE_Y], 0, D, H), L)
    scale_add = tile(load(step[table.SCALE_ADD], 0, D, H), L)
    scale_products = load(step[table.SCALE_PRODUCTS], 0, D, H)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            shared, own, mine = zeros(D, L), zeros(D, L), load(y, i * width + part, D, L)
            if out != 0:
                for e in range(first, end):
                    prefetch(x, index(col, min(e + A, last)) * width + part, D, L, A)
                    row = load(x, index(col, e) * width + part, D, L)
                    shared += tile(load(weight, e, D, 1), L) * row
                    prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                    own += tile(load(values, index(order, e) * H, D, H), L) * row
                    store(products, e * H, load(products, e * H, D, H) + scale_products * fold(mine * row, H))
                store(out, i * width + part, scale_x * shared)
            else:
                for e in range(first, end):
                    prefetch(x, index(col, min(e + A, last)) * width + part, D, L, A)
                    row = load(x, index(col, e) * width + part, D, L)
                    prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                    own += tile(load(values, index(order, e) * H, D, H), L) * row
                    store(products, e * H, load(products, e * H, D, H) + scale_products * fold(mine * row, H))
            own = scale_y * own
            if add != 0:
                own += scale_add * load(add, i * width + part, D, L)
            store(out2, i * width + part, own)


@inlined
def aggregate_both(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.AGGREGATE_BOTH`."""
    rowptr, col, order = step[table.ROWPTR], step[table.COL], step[table.ORDER]
    values, y, out = step[table.VALUES], step[table.Y], step[table.OUT]
    scale_y = tile(load(step[table.SCALE_Y], 0, D, H), L)
    for i in range(start, stop):
        first, end = index(rowptr, i), index(rowptr, i + 1)
        for part in range(0, width, L):
            total = zeros(D, L)
            for e in range(first, end):
                prefetch(y, index(col, min(e + A, last)) * width + part, D, L, A)
                prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                value = load(values, e * H, D, H) + load(values, index(order, e) * H, D, H)
                total += tile(value, L) * load(y, index(col, e) * width + part, D, L)
            store(out, i * width + part, scale_y * total)


@inlined
def add_values(step: Any, start: int, stop: int, D: Any, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.ADD_VALUES`."""
    x, out, scale_x = step[table.X], step[table.OUT], load(step[table.SCALE_X], 0, D, H)
    for e in range(index(step[table.ROWPTR], start), index(step[table.ROWPTR], stop)):
        store(out, e * H, load(out, e * H, D, H) + scale_x * load(x, e * H, D, H))


@inlined
def _product(step: Any, own: Any, i: int, e: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> Any:
    """The inner product of each head at an entry; ``own`` is the first part of row i of x."""
    x, y, col = step[table.X], step[table.Y], step[table.COL]
    later, j = index(col, min(e + A, last)) * width, index(col, e) * width
    prefetch(y, later, D, L, A)
    total = own * load(y, j, D, L)
    for part in range(L, width, L):
        prefetch(y, later + part, D, L, A)
        total += load(x, i * width + part, D, L) * load(y, j + part, D, L)
    return fold(total, H)


@inlined
def inner(step: Any, start: int, stop: int, width: int, last: int, D: Any, L: int, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.INNER`."""
    rowptr, x, add, out = step[table.ROWPTR], step[table.X], step[table.ADD], step[table.OUT]
    scale_x, scale_add = load(step[table.SCALE_X], 0, D, H), load(step[table.SCALE_ADD], 0, D, H)
    for i in range(start, stop):
        own, first, end = load(x, i * width, D, L), index(rowptr, i), index(rowptr, i + 1)
        # Which terms there are is asked once a row, and not at every entry.
        if add == 0:
            for e in range(first, end):
                store(out, e * H, scale_x * _product(step, own, i, e, width, last, D, L, H, A))
        else:
            for e in range(first, end):
                product = scale_x * _product(step, own, i, e, width, last, D, L, H, A)
                store(out, e * H, product + scale_add * load(add, e * H, D, H))


@inlined
def combine(step: Any, start: int, stop: int, width: int, D: Any, L: int, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.COMBINE`."""
    x, add, out = step[table.X], step[table.ADD], step[table.OUT]
    scale_x, scale_add = tile(load(step[table.SCALE_X], 0, D, H), L), tile(load(step[table.SCALE_ADD], 0, D, H), L)
    for place in range(start * width, stop * width, L):
        total = scale_x * load(x, place, D, L)
        if add != 0:
            total += scale_add * load(add, place, D, L)
        store(out, place, total)


@inlined
def to_rows(step: Any, start: int, stop: int, D: Any, L: int, C: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.TO_ROWS`."""
    for i in range(start, stop):
        features = load(step[table.X], index(step[table.VALUES], i) * L, D, L)
        store(step[table.OUT], i * L, turned(features, C))


@inlined
def from_rows(step: Any, start: int, stop: int, D: Any, L: int, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.FROM_ROWS`."""
    for i in range(start, stop):
        row = load(step[table.X], i * L, D, L)
        store(step[table.OUT], index(step[table.VALUES], i) * L, turned(row, H))


@inlined
def pick(step: Any, start: int, stop: int, D: Any, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.PICK`."""
    for e in range(index(step[table.ROWPTR], start), index(step[table.ROWPTR], stop)):
        store(step[table.OUT], e * H, load(step[table.X], index(step[table.VALUES], e) * H, D, H))


@inlined
def place(step: Any, start: int, stop: int, D: Any, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.PLACE`."""
    for e in range(index(step[table.ROWPTR], start), index(step[table.ROWPTR], stop)):
        store(step[table.OUT], index(step[table.VALUES], e) * H, load(step[table.X], e * H, D, H))
