"""The steps of GAT's attention and of its gradient, compiled, on vectors of heads."""

from typing import Any

from cagat.kernels import row_table as table
from cagat.kernels.lanes import chosen, exp, fold, index, inlined, load, prefetch, store, tile, zeros

_LESS, _NOT_MORE = 0, 1


@inlined
def _logit(step: Any, own: Any, e: int, last: int, D: Any, H: int, A: int) -> Any:
    """The logit of an entry before LeakyReLU."""
    prefetch(step[table.Y], index(step[table.COL], min(e + A, last)) * H, D, H, A)
    logit = own + load(step[table.Y], index(step[table.COL], e) * H, D, H)
    if step[table.ADD] != 0:
        logit += load(step[table.ADD], e * H, D, H)
    return logit


@inlined
def logits(step: Any, start: int, stop: int, width: int, D: Any, L: int, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.LOGITS`."""
    for i in range(start, stop):
        dst, src = zeros(D, H), zeros(D, H)
        for part in range(0, width, L):
            row = load(step[table.X], i * width + part, D, L)
            dst += fold(row * load(step[table.WEIGHT], part, D, L), H)
            src += fold(row * load(step[table.VALUES], part, D, L), H)
        store(step[table.OUT], i * H, dst)
        store(step[table.OUT2], i * H, src)


@inlined
def add_logits(step: Any, start: int, stop: int, width: int, D: Any, L: int, H: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.ADD_LOGITS`."""
    for i in range(start, stop):
        dst, src = tile(load(step[table.X], i * H, D, H), L), tile(load(step[table.Y], i * H, D, H), L)
        for part in range(0, width, L):
            total = dst * load(step[table.WEIGHT], part, D, L) + src * load(step[table.VALUES], part, D, L)
            store(step[table.OUT], i * width + part, load(step[table.OUT], i * width + part, D, L) + total)


@inlined
def softmax(step: Any, start: int, stop: int, last: int, D: Any, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.SOFTMAX`."""
    rowptr, x, out = step[table.ROWPTR], step[table.X], step[table.OUT]
    slope, zero = load(step[table.SCALE_X], 0, D, H), zeros(D, H)
    for i in range(start, stop):
        first, end, own = index(rowptr, i), index(rowptr, i + 1), load(x, i * H, D, H)
        peak = zeros(D, H)
        for e in range(first, end):
            logit = _logit(step, own, e, last, D, H, A)
            logit = chosen(_LESS, logit, zero, slope * logit, logit)
            store(out, e * H, logit)
            if e == first:
                peak = logit
            peak = chosen(_LESS, peak, logit, logit, peak)
        total = zeros(D, H)
        for e in range(first, end):
            power = exp(load(out, e * H, D, H) - peak)
            store(out, e * H, power)
            total += power
        for e in range(first, end):
            store(out, e * H, load(out, e * H, D, H) / total)


@inlined
def softmax_backward(step: Any, start: int, stop: int, last: int, D: Any, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.SOFTMAX_BACKWARD`."""
    rowptr, x, values, grad = step[table.ROWPTR], step[table.X], step[table.VALUES], step[table.WEIGHT]
    slope, zero = load(step[table.SCALE_X], 0, D, H), zeros(D, H)
    for i in range(start, stop):
        first, end, own = index(rowptr, i), index(rowptr, i + 1), load(x, i * H, D, H)
        mean, total = zeros(D, H), zeros(D, H)
        for e in range(first, end):
            mean += load(values, e * H, D, H) * load(grad, e * H, D, H)
        for e in range(first, end):
            at_logit = load(values, e * H, D, H) * (load(grad, e * H, D, H) - mean)
            # At zero the slope is that of torch's leaky_relu.
            at_logit = chosen(_NOT_MORE, _logit(step, own, e, last, D, H, A), zero, slope * at_logit, at_logit)
            store(step[table.OUT], e * H, at_logit)
            total += at_logit
        store(step[table.OUT2], i * H, total)


@inlined
def sums(step: Any, start: int, stop: int, last: int, D: Any, H: int, A: int) -> None:
    """See :attr:`~cagat.kernels.row_table.Op.SUM`."""
    rowptr, order, values = step[table.ROWPTR], step[table.ORDER], step[table.VALUES]
    for i in range(start, stop):
        total = zeros(D, H)
        for e in range(index(rowptr, i), index(rowptr, i + 1)):
            place = e
            if order != 0:
                prefetch(values, index(order, min(e + A, last)) * H, D, H, A)
                place = index(order, e)
            total += load(values, place * H, D, H)
        store(step[table.OUT], i * H, total)
