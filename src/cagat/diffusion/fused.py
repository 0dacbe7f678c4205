r"""Algorithm 1 and its gradient as two compiled passes over the graph: :func:`forward` and :func:`backward`.

With :math:`V_i = (\bar{A}^T)^i V_0` and :math:`B_r = (1 - \alpha) G + \xi Q(H_{r-1})`, round k goes down the chain to
level kT, multiplies by G, and comes up again through the steps of all rounds :math:`r \le k`:

.. math::
    Y_{kT} = G V_{kT}, \qquad Y_i = \alpha \bar{A} Y_{i+1} + B_r V_i, \qquad
    H_k = \lambda Y_0 + (1 - \lambda) Z.

The chain begins with Z, and all rounds share it; with feedback each has its own, which begins with
:math:`V_0 = H_{k-1}`. For a walk it is :math:`V_i = \bar{A}^i V_0`. With affinity on all pairs,
:math:`Q V = H (H^T V)` goes by a small matrix per head.

The gradient walks these steps backwards. With D for the gradients at Y:

.. math::
    D_0 = \lambda\, dH_k, \qquad D_{i+1} = \alpha \bar{A}^T D_i, \qquad dV_i \mathrel{+}= B_r^T D_i, \qquad
    dB_r \mathrel{+}= \langle D_i, V_i \rangle_E, \qquad dH_{r-1} \mathrel{+}= \xi (dB_r + dB_r^T) H_{r-1}

and at the end :math:`dV_{i-1} \mathrel{+}= \bar{A} dV_i`. No Y is needed, not even for the coefficients: the term of
level i has the factor :math:`\lambda \alpha^i`, so with :math:`c_i = \langle D_i, B_r V_i \rangle` it is
:math:`\alpha\, d\alpha = \sum i c_i - \dots` and :math:`\lambda\, d\lambda = \sum c_i - \dots`.

On a graph in parts the same passes run on the rows of each process. A step whose rows others read has two halves: these
rows, which are then on their way, and the rest, after which those of the others must have come.
"""

# ruff: noqa: N815  The names are those of the mathematics.

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cagat.kernels import attention_steps, gram_steps, steps
from cagat.kernels.compiled import CFunction, compiled_for_c
from cagat.kernels.exchange import SEND, VALUES, VALUES_BACK, WAIT
from cagat.kernels.row_passes import OWN, Constants, operands
from cagat.kernels.simd import inlined, unpack
from cagat.kernels.steps import Side, half_of

NO_AFFINITY, EDGES, FULL = 0, 1, 2
"""Where features enter the attention."""


class Scales(NamedTuple):
    """Vectors of heads."""

    one: int
    alpha: int
    rest: int  # 1 - alpha
    xi: int
    lam: int
    keep: int  # 1 - lam
    lam_alpha: int
    lam_rest: int
    lam_xi: int


class Common(NamedTuple):
    """What both passes are given: numbers, switches, and addresses, of features if not said otherwise."""

    counters: int
    nothing: int  # Zero, for what is absent. As a constant, each step would be compiled anew for it.
    nodes: int
    height: int
    channels: int
    level: int  # The bytes of the features of all nodes,
    matrix: int  # of values at all entries
    small: int  # and of a small matrix per head with its transpose.
    rounds: int
    steps: int
    affinity: int
    has_context: int
    feedback: int
    walks: int
    symmetric: int
    adds_Z: int  # Whether lam < 1 for any head.
    order: int  # Indices: the node of each row
    entries: int  # and the given entry of each entry.
    G: int
    chain: int
    hidden: int
    B: int
    grams: int
    blocks: int
    exchange: int  # The function that exchanges rows and values with other processes; 0 for a whole graph.
    halves: int  # 2 if there is one: the rows that others need, and the rest.


class Forward(NamedTuple):
    """Addresses for the forward pass alone."""

    Z: int  # As given; 0 if they are in the chain already.
    given: int  # G as given, or 0.
    Y: int
    other_Y: int
    H: int
    out: int  # As they are returned; 0 if H is taken.


class Backward(NamedTuple):
    """Addresses for the backward pass alone."""

    grad: int  # As given; 0 if it is in dH already.
    dH: int
    dH_full: int  # With affinity on all pairs, the gradients of all rounds.
    D: int
    other_D: int
    dV: int
    dZ: int
    direct: int  # The gradient at G where it stands alone,
    dB: int  # at B of each round with affinity on the edges, else at all B, both in the order of the transpose,
    by_rows: int  # and at one B in the order of the rows.
    dG: int
    dG_given: int
    d_grams: int
    out: int
    coefficients: int  # The number of the dots below, or 0 where nobody learns the coefficients.
    dot_terms: int
    dot_levels: int
    dot_Z: int
    dot_G: int
    dot_xi: int
    levels: int


_SCALES = OWN + len(Common._fields)
_PASS = _SCALES + len(Scales._fields)


@inlined
def _steps_before(p: Any, k: int) -> Any:
    """How many steps there are in all rounds before round k, each of which goes through those of the earlier ones."""
    if p.has_context:
        return p.steps * k * (k - 1) // 2
    return k - 1


@inlined
def _exchanged(c: int, p: Any, half: int, rows: int) -> int:
    """Rows whose first half has been made are sent to those who need them, and after the other half they are there."""
    if p.exchange:
        c = steps.exchange(c, p.exchange, WAIT if half > 0 else SEND, rows)
    return c


@cache
def forward(constants: Constants) -> CFunction:
    """The pass of Algorithm 1 from line 5 on; see :class:`Common` and :class:`Forward`."""
    D, L, P, H, A = constants

    def run(address: Any) -> None:
        rows, columns, parts = operands(address)
        p, s, f = unpack(address, OWN, Common), unpack(address, _SCALES, Scales), unpack(address, _PASS, Forward)
        down = rows if p.walks else columns
        # Abar^T V and G V share the rows they read where their entries are at the same places.
        shares = (p.walks or p.symmetric) and not p.feedback
        both = Side(rows.blocks, rows.bounds, rows.rowptr, rows.col, 0, down.weight, rows.last, rows.outer)
        # What others read of a round's features.
        is_read = p.affinity == EDGES or p.feedback
        K, T, level, Z = p.rounds, p.steps, p.level, p.chain
        c, none = p.counters, p.nothing
        added = Z if p.adds_Z else none  # (1 - lam) Z
        if f.given:
            c = attention_steps.pick(c, rows, D, H, values=f.given, entries=p.entries, out=p.G)
        for half in range(p.halves):
            if f.Z:
                c = steps.to_rows(
                    c, half_of(rows, half), parts, D, L, H, features=f.Z, channels=p.channels, nodes=p.order, out=Z
                )
            c = _exchanged(c, p, half, Z)

        made = 0  # The last level of the chain.
        if K == 0 or p.hidden:  # Line 5: H = lam G Z + (1 - lam) Z.
            H_0 = p.hidden if K > 0 else f.H
            made = 1 if shares and K > 0 and p.has_context else 0
            for half in range(p.halves):
                if made == 1:
                    c = steps.aggregate_twice(
                        c, half_of(both, half), parts, D, L, P, H, A, x=Z, values=p.G, scale_values=s.lam, add=added,
                        scale_add=s.keep, out=Z + level, out_values=H_0,
                    )  # fmt: skip
                    c = _exchanged(c, p, half, Z + level)
                else:
                    c = steps.aggregate(
                        c, half_of(rows, half), parts, D, L, H, A, x=none, scale_x=s.one, values=p.G, y=Z,
                        scale_y=s.lam, add=added, scale_add=s.keep, out=H_0,
                    )  # fmt: skip
                if is_read and K > 0:
                    c = _exchanged(c, p, half, H_0)
        for k in range(1, K + 1):
            H_before, H_after = p.hidden + (k - 1) * level, p.hidden + k * level if k < K else f.H
            if p.affinity == EDGES:
                B_k = p.B + (k - 1) * p.matrix
                c = steps.inner(
                    c, rows, parts, D, L, H, A, x=H_before, y=H_before, scale=s.xi, add=p.G, scale_add=s.rest,
                    out=B_k,
                )  # fmt: skip
            V_0, chain = Z, Z
            if p.feedback:
                V_0, chain, made = H_before, Z + _steps_before(p, k) * level, 0
            top, Y, other = k * T if p.has_context else 0, f.Y, f.other_Y
            for i in range(made, top):  # Down the chain.
                V = chain + i * level if i > 0 else V_0
                for half in range(p.halves):
                    c = steps.aggregate(
                        c, half_of(down, half), parts, D, L, H, A, x=V, scale_x=s.one, values=none, y=none,
                        scale_y=s.one, add=none, scale_add=s.one, out=chain + (i + 1) * level,
                    )  # fmt: skip
                    c = _exchanged(c, p, half, chain + (i + 1) * level)
            made = top + 1 if shares and p.has_context and k < K else top
            for half in range(p.halves if p.has_context else 0):
                if made > top:  # Y = G V_kT, and the next level of the chain.
                    c = steps.aggregate_twice(
                        c, half_of(both, half), parts, D, L, P, H, A, x=chain + top * level, values=p.G,
                        scale_values=s.one, add=none, scale_add=s.one, out=chain + (top + 1) * level, out_values=Y,
                    )  # fmt: skip
                    c = _exchanged(c, p, half, chain + (top + 1) * level)
                else:
                    c = steps.aggregate(
                        c, half_of(rows, half), parts, D, L, H, A, x=none, scale_x=s.one, values=p.G,
                        y=chain + top * level, scale_y=s.one, add=none, scale_add=s.one, out=Y,
                    )  # fmt: skip
                c = _exchanged(c, p, half, Y)
            for i in range(max(top, 1) - 1, -1, -1):  # Up again: Y = alpha Abar Y + B_r V_i, at last with Eq. (18).
                r = k - i // T
                out = other if i > 0 else H_after
                V = chain + i * level if i > 0 else V_0
                scale, scale_Y, scale_Q = (s.one, s.alpha, s.xi) if i > 0 else (s.lam, s.lam_alpha, s.lam_xi)
                context, add = Y if p.has_context else none, none if i > 0 else added
                values = p.B + (r - 1) * p.matrix
                if p.affinity != EDGES:
                    values, scale = p.G, s.rest if i > 0 else s.lam_rest
                for half in range(p.halves):
                    c = steps.aggregate(
                        c, half_of(rows, half), parts, D, L, H, A, x=context, scale_x=scale_Y, values=values, y=V,
                        scale_y=scale, add=add, scale_add=s.keep, out=out,
                    )  # fmt: skip
                    if i > 0 or (is_read and k < K):
                        c = _exchanged(c, p, half, out)
                if p.affinity == FULL:  # xi H (H^T V_i)
                    X, M = p.hidden + (r - 1) * level, p.grams + (_steps_before(p, k) + i) * 2 * p.small
                    c = gram_steps.gram(
                        c, parts, D, L, H, p.nodes, p.height, x=X, y=V, channels=p.channels, out=p.blocks
                    )
                    c = gram_steps.sum_gram(
                        c, D, H, p.nodes, p.height, blocks=p.blocks, channels=p.channels, out=M,
                        transpose=M + p.small,
                    )  # fmt: skip
                    c = gram_steps.add_gram_product(
                        c, rows, parts, D, L, H, x=X, gram=M, channels=p.channels, scale=scale_Q, out=out, y=none,
                        dots=none, dots_level=none, level=none,
                    )  # fmt: skip
                Y, other = out, Y
        if f.out:
            steps.from_rows(c, rows, parts, D, L, H, rows=f.H, channels=p.channels, nodes=p.order, out=f.out)

    return compiled_for_c(run)


@cache
def backward(constants: Constants) -> CFunction:
    """The pass of the gradient; see :class:`Common` and :class:`Backward`."""
    D, L, P, H, A = constants
    itemsize = np.dtype(D).itemsize
    vector = H * itemsize

    def run(address: Any) -> None:
        rows, columns, parts = operands(address)
        p, s, b = unpack(address, OWN, Common), unpack(address, _SCALES, Scales), unpack(address, _PASS, Backward)
        up = columns if p.walks else rows  # Against the chain.
        K, T, level, Z = p.rounds, p.steps, p.level, p.chain
        c, none = p.counters, p.nothing
        if p.exchange:  # The values in our columns, some of which stand in rows of other processes.
            c = steps.exchange(c, p.exchange, VALUES, p.G)
            for r in range(K if p.affinity == EDGES else 0):
                c = steps.exchange(c, p.exchange, VALUES, p.B + r * p.matrix)
        for half in range(p.halves):
            if b.grad:
                c = steps.to_rows(
                    c, half_of(rows, half), parts, D, L, H, features=b.grad, channels=p.channels, nodes=p.order,
                    out=b.dH,
                )  # fmt: skip
            if K == 0 and not b.coefficients:
                c = _exchanged(c, p, half, b.dH)

        if K == 0 and not b.coefficients:
            # With one product alone it costs more to bring dG into the order of the rows than to read Z for it.
            c = steps.inner(c, rows, parts, D, L, H, A, x=b.dH, y=Z, scale=s.lam, add=none, scale_add=s.one, out=b.dG)
            c = steps.aggregate(
                c, columns, parts, D, L, H, A, x=none, scale_x=s.one, values=p.G, y=b.dH, scale_y=s.lam,
                add=b.dH if p.adds_Z else none,
                scale_add=s.keep, out=b.dZ,
            )  # fmt: skip
        dH = b.dH
        for k in range(K, 0, -1):
            # H_k = lam Y_0 + (1 - lam) Z.
            for half in range(p.halves):
                c = steps.split(
                    c, half_of(rows, half), parts, D, L, H, x=dH, scale_one=s.lam, one=b.D, scale_other=s.keep,
                    other=b.dZ, adds=k < K, dots=b.dot_Z, y=Z,
                )  # fmt: skip
                c = _exchanged(c, p, half, b.D)
            V_0, chain, dV_0 = Z, Z, b.dZ
            if p.feedback:
                V_0, chain, dV_0 = p.hidden + (k - 1) * level, Z + _steps_before(p, k) * level, b.dV
                if p.affinity == FULL:
                    dV_0 = b.dH_full + (k - 1) * level
            top, X, other = k * T if p.has_context else 0, b.D, b.other_D
            for i in range(top + 1):
                V = chain + i * level if i > 0 else V_0
                dV = b.dV + i * level if i > 0 else dV_0
                # What has been written is added to.
                adds = k < K and not p.feedback if i > 0 else not p.feedback or p.affinity == FULL
                r = k - i // T
                goes_on = i < top  # Else it is G V_kT, or there is no context.
                add, out = dV if adds else none, other if goes_on else none
                values, scale, products = p.G, s.one, b.direct
                if goes_on or not p.has_context:
                    values, scale, products = p.G, s.rest, b.dB
                    if p.affinity == EDGES:
                        values, scale = p.B + (r - 1) * p.matrix, s.one
                        products = b.dB + (r - 1) * p.matrix
                for half in range(p.halves):
                    c = steps.aggregate_inner(
                        c, half_of(columns, half), parts, D, L, P, H, A, x=X, scale_x=s.alpha, y=V, values=values,
                        scale_values=scale, add=add, out=out, out_values=dV, products=products, dots=b.dot_terms,
                        dots_level=b.dot_levels, level=b.levels + i * vector,
                    )  # fmt: skip
                    if out:
                        c = _exchanged(c, p, half, out)
                if p.affinity == FULL and (goes_on or not p.has_context):
                    # Of xi h M with M = h^T V and N = h^T D: dV = xi h N and dh = xi (D M^T + V N^T).
                    h, dh = p.hidden + (r - 1) * level, b.dH_full + (r - 1) * level
                    M, N = (
                        p.grams + (_steps_before(p, k) + i) * 2 * p.small,
                        b.d_grams + (_steps_before(p, k) + i) * 2 * p.small,
                    )
                    c = gram_steps.gram(
                        c, parts, D, L, H, p.nodes, p.height, x=h, y=X, channels=p.channels, out=p.blocks
                    )
                    c = gram_steps.sum_gram(
                        c, D, H, p.nodes, p.height, blocks=p.blocks, channels=p.channels, out=N,
                        transpose=N + p.small,
                    )  # fmt: skip
                    for term in range(3):
                        x, small, target, dots = h, N, dV, b.dot_terms
                        if term == 1:
                            x, small, target, dots = X, M + p.small, dh, none
                        elif term == 2:
                            x, small, target, dots = V, N + p.small, dh, none
                        c = gram_steps.add_gram_product(
                            c, rows, parts, D, L, H, x=x, gram=small, channels=p.channels, scale=s.xi, out=target,
                            y=V, dots=dots, dots_level=b.dot_levels, level=b.levels + i * vector,
                        )  # fmt: skip
                X, other = other, X
            if p.feedback:
                for half in range(p.halves if top > 0 else 0):
                    c = _exchanged(c, p, half, b.dV + top * level)
                for i in range(top, 0, -1):
                    before = b.dV + (i - 1) * level if i > 1 else dV_0
                    for half in range(p.halves):
                        c = steps.aggregate(
                            c, half_of(up, half), parts, D, L, H, A, x=b.dV + i * level, scale_x=s.one, values=none,
                            y=none, scale_y=s.one, add=before, scale_add=s.one, out=before,
                        )  # fmt: skip
                        if i > 1:
                            c = _exchanged(c, p, half, before)
                dH = dV_0
            if p.affinity == FULL:
                dH = b.dH_full + (k - 1) * level
            elif p.affinity == EDGES:
                dB, add = b.dB + (k - 1) * p.matrix, dV_0 if p.feedback else none
                if b.by_rows:
                    c = attention_steps.place(c, columns, D, H, values=dB, entries=columns.order, out=b.by_rows)
                    if p.exchange:
                        c = steps.exchange(c, p.exchange, VALUES_BACK, b.by_rows)
                c = steps.aggregate_both(
                    c, columns, parts, D, L, H, A, values=dB, y=p.hidden + (k - 1) * level, scale=s.xi, add=add,
                    out=b.dH, dots=b.dot_xi, other=rows, other_values=b.by_rows,
                )  # fmt: skip
                dH = b.dH
        if p.hidden or (K == 0 and b.coefficients):  # Line 5.
            for half in range(p.halves):
                c = steps.split(
                    c, half_of(rows, half), parts, D, L, H, x=dH, scale_one=s.lam, one=b.D, scale_other=s.keep,
                    other=b.dZ, adds=K > 0, dots=b.dot_Z, y=Z,
                )  # fmt: skip
                c = _exchanged(c, p, half, b.D)
            c = steps.aggregate_inner(
                c, columns, parts, D, L, P, H, A, x=b.D, scale_x=s.one, y=Z, values=p.G, scale_values=s.one,
                add=b.dZ, out=none, out_values=b.dZ, products=b.direct, dots=b.dot_terms, dots_level=b.dot_levels,
                level=b.levels,
            )  # fmt: skip
        if p.has_context and not p.feedback:
            for half in range(p.halves if K > 0 else 0):
                c = _exchanged(c, p, half, b.dV + K * T * level)
            for i in range(K * T, 0, -1):
                before = b.dV + (i - 1) * level if i > 1 else b.dZ
                for half in range(p.halves):
                    c = steps.aggregate(
                        c, half_of(up, half), parts, D, L, H, A, x=b.dV + i * level, scale_x=s.one, values=none,
                        y=none, scale_y=s.one, add=before, scale_add=s.one, out=before,
                    )  # fmt: skip
                    if i > 1:
                        c = _exchanged(c, p, half, before)
        if b.direct:
            at_rounds = min(K, 1)
            if p.affinity == EDGES:
                at_rounds = K
            c = attention_steps.attention_gradient(
                c, columns, D, H, direct=b.direct, by_rounds=b.dB, rounds=at_rounds, distance=p.matrix // itemsize,
                scale=s.rest, G=p.G, out=b.dG, dots=b.dot_G,
            )  # fmt: skip
            if p.exchange:
                c = steps.exchange(c, p.exchange, VALUES_BACK, b.dG)
        if b.dG_given:
            c = attention_steps.place(c, rows, D, H, values=b.dG, entries=p.entries, out=b.dG_given)
        if b.out:
            steps.from_rows(c, rows, parts, D, L, H, rows=b.dZ, channels=p.channels, nodes=p.order, out=b.out)

    return compiled_for_c(run)
