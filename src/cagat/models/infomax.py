"""The objective of Deep Graph Infomax and its gradient, written by hand, on the CPU.

On PubMed the features take 40 MB, so that what an epoch costs is how often they are read and written. Autograd over
single operations does that some thirty times. Here they are gathered once for the graph and once for the shuffled one,
whose features are used while they are in the first cache and never written, and read once more when the summary is
known. The gradient at the output of the encoder is an outer product, and behind the activation all that it needs to
know of a feature is whether it is positive: a bit. What is gathered for the gradient then fits in the second cache.

The compiled loops know memory by addresses and work on rows in panels of :data:`LANES` channels
(:mod:`cagat.kernels.simd`). A loop is given a range of blocks of rows, or of rows, and writes nothing of others.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import types
from torch import Tensor
from torch.autograd.function import once_differentiable

from cagat.kernels import CSRPattern
from cagat.kernels.compiled import compiled
from cagat.kernels.scratch import scratch
from cagat.kernels.simd import (
    FAR,
    fold,
    index,
    inlined,
    intrinsic,
    keep_alive,
    load,
    multiply_add,
    prefetch,
    select,
    store,
    tile,
    zeros,
)
from cagat.kernels.threads import kernel_threads, row_threads

LANES = 64
"""Rows are worked on in panels of so many channels, of which there must be a multiple."""

BLOCK = 256
"""Sums over rows are made of those over blocks of so many, so that their bits do not depend on the threads."""

# That of torch_geometric.nn.models.deep_graph_infomax, which keeps logarithms finite.
_EPS = 1e-15


class InfomaxObjective(torch.autograd.Function):
    r"""PyG's ``DeepGraphInfomax.loss`` of the encoder :math:`\mathrm{PReLU}(\hat{A} Z + b)`, as a function of Z.

    The arguments are Z, of which the rows ``shuffle`` are those of the shuffled graph, b, PReLU's slope, the weight of
    the discriminator, and :math:`\hat{A}` as a pattern of 32-bit indices and its values in both orders.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        shuffle: Tensor,
        bias: Tensor,
        slope: Tensor,
        weight: Tensor,
        pattern: CSRPattern,
        values: tuple[Tensor, Tensor],
    ) -> Tensor:
        """The loss; all gradients but that at Z fall off on the way."""
        z, bias, weight = (tensor.detach().contiguous() for tensor in (z, bias, weight))
        n, channels = z.shape
        D = z.numpy().dtype.type
        signs = torch.empty(2, n, channels // 8, dtype=torch.uint8)
        gates, losses = z.new_empty(2, n), z.new_empty(2, n)
        hidden = scratch(n, channels, dtype=z.dtype)
        shuffled = shuffle.to(torch.int32)[pattern.col]
        entries = (_address(pattern.rowptr), _address(pattern.col), _address(values[0]))
        encoder = Encoder(*entries, _address(z), _address(bias), pattern.num_entries - 1, channels)
        encoders = (encoder, encoder._replace(col=_address(shuffled)))

        def sum_rows(loop: Any, *arguments: Any) -> tuple[Tensor, ...]:
            """What a loop sums over the nodes: of all features what is positive, what is not, and what they weigh."""
            sums = z.new_empty(-(-n // BLOCK), 3, channels)
            firsts = pattern.rowptr.numpy()[np.minimum(np.arange(len(sums) + 1) * BLOCK, n)]
            row_threads.run(loop, firsts, (*arguments, _address(sums), n, D), channels, kernel_threads())
            return sums.sum(dim=0).unbind()

        above, below, count = sum_rows(_encode, encoders[0], _address(hidden), _address(signs[0]))
        summary = ((above + slope * below) / n).sigmoid()
        v = weight @ summary
        rows = (_address(hidden), _address(signs[1]), _address(v), _address(slope))
        real, fake = (
            sum_rows(_judge, encoders[i], is_real, *rows, gates[i].numpy(), losses[i].numpy())
            for i, is_real in enumerate((True, False))
        )
        up, down, gated = (one + other for one, other in zip(real, fake, strict=True))
        u = up + slope * down
        # What the summary hands down to the features of every node of the graph, beside gate times v.
        shared = (u @ weight) * summary * (1 - summary) / n
        ctx.gradients = (
            v * (slope * gates.sum() + (1 - slope) * gated) + shared * (slope * n + (1 - slope) * count),
            (v @ down + shared @ below).reshape(slope.shape),
            torch.outer(u, summary),
        )
        back = torch.empty_like(shuffle).scatter_(0, shuffle, torch.arange(n)).to(torch.int32)
        ctx.save_for_backward(signs, gates, back, v, shared, slope, pattern.rowptr_t, pattern.col_t, values[1])
        return losses.mean(dim=1).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients at Z, b, the slope and the weight."""
        signs, gates, back, v, shared, slope, rowptr_t, col_t, value_t = ctx.saved_tensors
        grad_z = None
        if ctx.needs_input_grad[0]:
            grad_z = scratch(back.numel(), v.numel(), dtype=v.dtype)
            gates, shared = gates * grad, shared * grad
            longest, width, D = int(rowptr_t.diff().max()), v.numel(), v.numpy().dtype.type
            entries = (_address(rowptr_t), _address(col_t), value_t.numpy(), back.numpy())
            nodes = (_address(signs[0]), _address(signs[1]), gates[0].numpy(), gates[1].numpy())
            rows = (_address(v), _address(shared), slope.detach().numpy(), _address(grad_z))
            arguments = (*entries, *nodes, *rows, longest, width, D)
            row_threads.run(_hand_down, rowptr_t.numpy(), arguments, width, kernel_threads())
        grad_bias, grad_slope, grad_weight = (gradient * grad for gradient in ctx.gradients)
        return grad_z, None, grad_bias, grad_slope, grad_weight, None, None


def _address(tensor: Tensor) -> int:
    assert tensor.is_contiguous()
    return tensor.data_ptr()


class Encoder(NamedTuple):
    """What ``A Z + b`` is made of: the addresses of A's entries, of Z and of b, the last entry and the width of Z."""

    rowptr: int
    col: int
    value: int
    z: int
    bias: int
    last: int
    width: int


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
def _encode_panel(a: Any, i: int, panel: int, row: int, signs: int, D: Any) -> Any:
    """A panel of the row i of ``A Z + b``, written down with its signs."""
    h = load(a.bias, panel, D, LANES)
    for e in range(index(a.rowptr, i), index(a.rowptr, i + 1)):
        prefetch(a.z, index(a.col, min(e + FAR, a.last)) * a.width + panel, D, LANES, FAR)
        z = load(a.z, index(a.col, e) * a.width + panel, D, LANES)
        h = multiply_add(tile(load(a.value, e, D, 1), LANES), z, h)
    store(row, panel, h)
    _store_signs(signs, i * a.width + panel, h)
    return h


@inlined
def _add_to(sums: int, offset: int, lanes: Any, D: Any) -> None:
    store(sums, offset, load(sums, offset, D, LANES) + lanes)


@inlined
def _add_row(sums: int, row: int, gate: Any, width: int, D: Any) -> None:
    """Add a row, times a number, to the sums of what is positive and of what is not, and the number where it is."""
    nothing = zeros(D, LANES)
    for panel in range(0, width, LANES):
        h = load(row, panel, D, LANES)
        # NaN is not positive, and must not get lost.
        above = select(0, nothing, h, h, nothing)
        _add_to(sums, panel, gate * above, D)
        _add_to(sums, width + panel, gate * (h - above), D)
        _add_to(sums, 2 * width + panel, select(0, nothing, h, gate, nothing), D)


@inlined
def _cleared(sums: int, block: int, width: int, size: int, D: Any) -> int:
    """Where the sums of a block are, set to zero."""
    mine = sums + 3 * block * width * size
    for panel in range(0, 3 * width, LANES):
        store(mine, panel, zeros(D, LANES))
    return mine


@compiled
def _encode(a: Any, hidden: int, signs: int, sums: int, n: int, D: Any, start: int, stop: int) -> None:
    """``hidden = A Z + b``, its signs, and its sums over the rows of each block."""
    ones = np.ones(1, dtype=D)
    one, size = tile(load(np.int64(ones.ctypes.data), 0, D, 1), LANES), ones.itemsize
    for block in range(start, stop):
        mine = _cleared(sums, block, a.width, size, D)
        for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
            row = hidden + i * a.width * size
            for panel in range(0, a.width, LANES):
                _encode_panel(a, i, panel, row, signs, D)
            _add_row(mine, row, one, a.width, D)


@compiled
def _judge(
    a: Any,
    is_real: bool,
    hidden: int,
    signs: int,
    v: int,
    slope: int,
    gates: Any,
    losses: Any,
    sums: int,
    n: int,
    D: Any,
    start: int,
    stop: int,
) -> None:
    """The loss of each node, its gradient at the node's score, and the sums of the rows times this.

    The rows of real nodes are in ``hidden``; those of the others are made here, and nobody keeps them.
    """
    kept, score, gate = np.empty(a.width, dtype=D), np.empty(1, dtype=D), np.int64(gates.ctypes.data)
    tilt, nothing, size = tile(load(slope, 0, D, 1), LANES), zeros(D, LANES), score.itemsize
    for block in range(start, stop):
        mine = _cleared(sums, block, a.width, size, D)
        for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
            row = hidden + i * a.width * size if is_real else np.int64(kept.ctypes.data)
            total = zeros(D, LANES)
            for panel in range(0, a.width, LANES):
                h = load(row, panel, D, LANES) if is_real else _encode_panel(a, i, panel, row, signs, D)
                total = multiply_add(load(v, panel, D, LANES), select(0, nothing, h, h, tilt * h), total)
            store(np.int64(score.ctypes.data), 0, fold(total, 1))
            losses[i], slant = _verdict(score[0], is_real, D)
            gates[i] = slant / D(n)
            _add_row(mine, row, tile(load(gate, i, D, 1), LANES), a.width, D)
    keep_alive(kept)


@compiled
def _hand_down(
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
        for panel in range(0, width, LANES):
            times_v, times_shared = zeros(D, LANES), zeros(D, LANES)
            for e in range(first, last):
                bits = index(col, e) * width + panel
                times_v += _where_positive(signs, bits, tile(load(factor, e - first, D, 1), LANES))
                times_shared += _where_positive(signs, bits, tile(load(factor, longest + e - first, D, 1), LANES))
            for e in range(first_shuffled, last_shuffled):
                at = tile(load(factor, 2 * longest + e - first_shuffled, D, 1), LANES)
                times_v += _where_positive(signs_shuffled, index(col, e) * width + panel, at)
            at_v = multiply_add(rest, times_v, tile(load(end, 0, D, 1), LANES))
            at_shared = multiply_add(rest, times_shared, tile(load(end, 1, D, 1), LANES))
            row = multiply_add(load(shared, panel, D, LANES), at_shared, load(v, panel, D, LANES) * at_v)
            store(out, k * width + panel, row)
