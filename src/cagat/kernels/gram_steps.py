"""The steps of affinity on all pairs, which goes by a small matrix per head. See :mod:`cagat.kernels.steps`."""

from typing import Any

from cagat.kernels.simd import (
    fold,
    index,
    load,
    multiply_add,
    step,
    store,
    tile,
    zeros,
)
from cagat.kernels.steps import next_block, take_block, wait_for_all


@step
def gram(
    counters: int, panels: Any, D: Any, L: int, H: int, nodes: int, height: int, x: int, y: int, channels: int, out: int
) -> int:
    """``x^T y`` for each head, summed over blocks of ``height`` rows: ``out[block, c, d] = sum_i x[i, c] y[i, d]``.

    The blocks are the same however many threads there are, and so are the sums over them.
    """
    blocks = (nodes + height - 1) // height
    block = take_block(counters)
    while block < blocks:
        for c in range(channels):
            own = c // (L // H) * panels.panel + c % (L // H) * H
            for panel in range(panels.number):
                total = zeros(D, L)
                for i in range(block * height, min(nodes, (block + 1) * height)):
                    row = load(y, i * panels.row + panel * panels.panel, D, L)
                    total = multiply_add(tile(load(x, i * panels.row + own, D, H), L), row, total)
                store(out, (block * channels + c) * panels.number * L + panel * L, total)
        block = next_block(counters)
    return wait_for_all(counters, blocks)


@step
def sum_gram(
    counters: int, D: Any, H: int, nodes: int, height: int, channels: int, blocks: int, out: int, transpose: int
) -> int:
    """The sum of the ``blocks`` that :func:`gram` made, and its transpose."""
    block = take_block(counters)
    while block < 1:
        for c in range(channels):
            for d in range(channels):
                total = zeros(D, H)
                for b in range((nodes + height - 1) // height):
                    total += load(blocks, ((b * channels + c) * channels + d) * H, D, H)
                store(out, (c * channels + d) * H, total)
                store(transpose, (d * channels + c) * H, total)
        block = next_block(counters)
    return wait_for_all(counters, 1)


@step
def add_gram_product(
    counters: int, side: Any, panels: Any, D: Any, L: int, H: int, x: int, gram: int, channels: int, scale: int,
    out: int, y: int, dots: int, dots_level: int, level: int,
) -> int:  # fmt: skip
    """``out[i] += own`` with ``own = scale sum_c x[i, c] gram[c]``; dots as in :func:`aggregate_inner`."""
    block = take_block(counters)
    while block < side.blocks:
        by_sum = tile(load(scale, 0, D, H), L)
        for panel in range(panels.number):
            for i in range(index(side.bounds, block), index(side.bounds, block + 1)):
                total, spot = zeros(D, L), i * panels.row + panel * panels.panel
                for c in range(channels):
                    own = i * panels.row + c // (L // H) * panels.panel + c % (L // H) * H
                    row = load(gram, c * channels * H + panel * L, D, L)
                    total = multiply_add(tile(load(x, own, D, H), L), row, total)
                total = by_sum * total
                if dots != 0:
                    dot = fold(total * load(y, spot, D, L), H)
                    store(dots, i * H, load(dots, i * H, D, H) + dot)
                    store(dots_level, i * H, multiply_add(load(level, 0, D, H), dot, load(dots_level, i * H, D, H)))
                store(out, spot, load(out, spot, D, L) + total)
        block = next_block(counters)
    return wait_for_all(counters, side.blocks)
