"""The steps of GAT's attention: values at the entries, which are vectors of heads. See :mod:`cagat.kernels.steps`."""

from typing import Any

from cagat.kernels.simd import (
    exp,
    fold,
    index,
    inlined,
    load,
    multiply_add,
    prefetch,
    select,
    step,
    store,
    tile,
    zeros,
)
from cagat.kernels.steps import next_block, take_block, wait_for_all

_LESS, _NOT_MORE = 0, 1


@step
def gather(counters: int, side: Any, D: Any, H: int, values: int, entries: int, out: int) -> int:
    """``out[e] = values[entries[e]]``, vectors of heads."""
    block = take_block(counters)
    while block < side.blocks:
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for e in range(index(side.rowptr, start), index(side.rowptr, stop)):
            store(out, e * H, load(values, index(entries, e) * H, D, H))
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def scatter(counters: int, side: Any, D: Any, H: int, values: int, entries: int, out: int) -> int:
    """The reverse of :func:`gather`: ``out[entries[e]] = values[e]``."""
    block = take_block(counters)
    while block < side.blocks:
        start, stop = index(side.bounds, block), index(side.bounds, block + 1)
        for e in range(index(side.rowptr, start), index(side.rowptr, stop)):
            store(out, index(entries, e) * H, load(values, e * H, D, H))
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def attention_gradient(
    counters: int, side: Any, D: Any, H: int, direct: int, by_rounds: int, rounds: int, distance: int, scale: int,
    G: int, out: int, dots: int,
) -> int:  # fmt: skip
    """``out[order[e]] = direct[e] + scale b`` with b the sum of ``by_rounds`` over the rounds.

    And ``dots[i] += b G[order[e]]``, if they are wanted. The rounds' values are ``distance`` numbers apart.
    """
    block = take_block(counters)
    while block < side.blocks:
        by_sum = load(scale, 0, D, H)
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            dot = zeros(D, H)
            for e in range(index(side.rowptr, i), index(side.rowptr, i + 1)):
                total, offset = zeros(D, H), index(side.order, e) * H
                for r in range(rounds):
                    total += load(by_rounds, r * distance + e * H, D, H)
                dot = multiply_add(total, load(G, offset, D, H), dot)
                store(out, offset, multiply_add(by_sum, total, load(direct, e * H, D, H)))
            if dots != 0:
                store(dots, i * H, load(dots, i * H, D, H) + dot)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


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
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, x: int, att_dst: int, att_src: int, dst: int,
    src: int,
) -> int:  # fmt: skip
    """``dst[i] = <x[i], att_dst>`` and ``src[i] = <x[i], att_src>``, for each head; the weights are rows."""
    block = take_block(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            to_dst, to_src = zeros(D, H), zeros(D, H)
            for panel in range(panels.number):
                row = load(x, i * panels.row + panel * panels.panel, D, L)
                to_dst += fold(row * load(att_dst, panel * L, D, L), H)
                to_src += fold(row * load(att_src, panel * L, D, L), H)
            store(dst, i * H, to_dst)
            store(src, i * H, to_src)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def add_logits(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, dst: int, src: int, att_dst: int, att_src: int,
    out: int,
) -> int:  # fmt: skip
    """The transpose of :func:`logits`: ``out[i] += dst[i] att_dst + src[i] att_src``."""
    block = take_block(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            at_dst, at_src = tile(load(dst, i * H, D, H), L), tile(load(src, i * H, D, H), L)
            for panel in range(panels.number):
                spot = i * panels.row + panel * panels.panel
                total = multiply_add(at_dst, load(att_dst, panel * L, D, L), load(out, spot, D, L))
                store(out, spot, multiply_add(at_src, load(att_src, panel * L, D, L), total))
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def softmax(
    counters: int, side: Any, D: Any, H: int, A: int, dst: int, src: int, edge: int, slope: int, out: int
) -> int:
    """``out[e] = softmax_e LeakyReLU(dst[i] + src[j] + edge[e])``, vectors of heads."""
    block = take_block(counters)
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
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def softmax_backward(
    counters: int, side: Any, D: Any, H: int, A: int, dst: int, src: int, edge: int, slope: int, softmax: int,
    grad: int, grad_logit: int, grad_dst: int,
) -> int:  # fmt: skip
    """``grad_logit[e]``, the gradient at the logits before LeakyReLU, and ``grad_dst[i]``, its sum."""
    block = take_block(counters)
    while block < side.blocks:
        by_slope, zero = load(slope, 0, D, H), zeros(D, H)
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            first, end, own = index(side.rowptr, i), index(side.rowptr, i + 1), load(dst, i * H, D, H)
            mean, total = zeros(D, H), zeros(D, H)
            for e in range(first, end):
                mean = multiply_add(load(softmax, e * H, D, H), load(grad, e * H, D, H), mean)
            for e in range(first, end):
                at_logit = load(softmax, e * H, D, H) * (load(grad, e * H, D, H) - mean)
                # At zero the slope is that of torch's leaky_relu.
                logit = _logit(side, own, e, src, edge, D, H, A)
                at_logit = select(_NOT_MORE, logit, zero, by_slope * at_logit, at_logit)
                store(grad_logit, e * H, at_logit)
                total += at_logit
            store(grad_dst, i * H, total)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)


@step
def sums(counters: int, side: Any, D: Any, H: int, A: int, values: int, out: int) -> int:
    """``out[i] = sum_e values[order[e]]``, vectors of heads."""
    block = take_block(counters)
    while block < side.blocks:
        for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
            total = zeros(D, H)
            for e in range(index(side.rowptr, i), index(side.rowptr, i + 1)):
                prefetch(values, index(side.order, min(e + A, side.last)) * H, D, H, A)
                total += load(values, index(side.order, e) * H, D, H)
            store(out, i * H, total)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)
