r"""The gradient of :mod:`~cagat.diffusion.fused` as two compiled passes: :func:`backward`, :func:`attend_backward`.

The gradient walks these steps backwards. With D for the gradients at Y:

.. math::
    D_0 = \lambda\, dH_k, \qquad D_{i+1} = \alpha \bar{A}^T D_i, \qquad dV_i \mathrel{+}= B_r^T D_i, \qquad
    dB_r \mathrel{+}= \langle D_i, V_i \rangle_E, \qquad dH_{r-1} \mathrel{+}= \xi (dB_r + dB_r^T) H_{r-1}

and at the end :math:`dV_{i-1} \mathrel{+}= \bar{A} dV_i`. No Y is needed, not even for the coefficients: the term of
level i has the factor :math:`\lambda \alpha^i`, so with :math:`c_i = \langle D_i, B_r V_i \rangle` it is
:math:`\alpha\, d\alpha = \sum i c_i - \dots` and :math:`\lambda\, d\lambda = \sum c_i - \dots`.
"""

# ruff: noqa: N815  The names are those of the mathematics.

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cagat.diffusion.fused import EDGES, FULL, PASS, SCALES, Attend, Common, Scales, exchanged, steps_before
from cagat.kernels import attention_steps, gram_steps, steps
from cagat.kernels.compiled import CFunction, compiled_for_c
from cagat.kernels.exchange import VALUES, VALUES_BACK
from cagat.kernels.row_passes import OWN, Constants, operands
from cagat.kernels.simd import inlined, unpack
from cagat.kernels.steps import half_of


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


@inlined
def against_the_chain(
    c: int, p: Any, up: Any, panels: Any, D: Any, L: int, H: int, A: int, top: int, dV: int, dV_0: int, one: int
) -> int:
    """From the top level down, what a level's gradient adds to that of the one before it; that of level 0 is dV_0."""
    none = p.nothing
    for half in range(p.halves if top > 0 else 0):
        c = exchanged(c, p, half, dV + top * p.level)
    for i in range(top, 0, -1):
        before = dV + (i - 1) * p.level if i > 1 else dV_0
        for half in range(p.halves):
            c = steps.aggregate(
                c, half_of(up, half), panels, D, L, H, A, x=dV + i * p.level, scale_x=one, values=none, y=none,
                scale_y=one, add=before, scale_add=one, out=before,
            )  # fmt: skip
            if i > 1:
                c = exchanged(c, p, half, before)
    return c


@cache
def backward(constants: Constants) -> CFunction:
    """The pass of the gradient; see :class:`Common` and :class:`Backward`."""
    D, L, P, H, A = constants
    itemsize = np.dtype(D).itemsize
    vector = H * itemsize

    def run(address: Any) -> None:
        rows, columns, panels = operands(address)
        p, s, b = unpack(address, OWN, Common), unpack(address, SCALES, Scales), unpack(address, PASS, Backward)
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
                    c, half_of(rows, half), panels, D, L, H, features=b.grad, channels=p.channels, nodes=p.order,
                    out=b.dH,
                )  # fmt: skip
            if K == 0 and not b.coefficients:
                c = exchanged(c, p, half, b.dH)

        if K == 0 and not b.coefficients:
            # With one product alone it costs more to bring dG into the order of the rows than to read Z for it.
            c = steps.inner(c, rows, panels, D, L, H, A, x=b.dH, y=Z, scale=s.lam, add=none, scale_add=s.one, out=b.dG)
            c = steps.aggregate(
                c, columns, panels, D, L, H, A, x=none, scale_x=s.one, values=p.G, y=b.dH, scale_y=s.lam,
                add=b.dH if p.adds_Z else none,
                scale_add=s.own, out=b.dZ,
            )  # fmt: skip
        dH = b.dH
        for k in range(K, 0, -1):
            # H_k = lam Y_0 + (1 - lam) Z.
            for half in range(p.halves):
                c = steps.split(
                    c, half_of(rows, half), panels, D, L, H, x=dH, scale_one=s.lam, one=b.D, scale_other=s.own,
                    other=b.dZ, adds=k < K, dots=b.dot_Z, y=Z,
                )  # fmt: skip
                c = exchanged(c, p, half, b.D)
            V_0, chain, dV_0 = Z, Z, b.dZ
            if p.feedback:
                V_0, chain, dV_0 = p.hidden + (k - 1) * level, Z + steps_before(p, k) * level, b.dV
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
                        c, half_of(columns, half), panels, D, L, P, H, A, x=X, scale_x=s.alpha, y=V, values=values,
                        scale_values=scale, add=add, out=out, out_values=dV, products=products, dots=b.dot_terms,
                        dots_level=b.dot_levels, level=b.levels + i * vector,
                    )  # fmt: skip
                    if out:
                        c = exchanged(c, p, half, out)
                if p.affinity == FULL and (goes_on or not p.has_context):
                    # Of xi h M with M = h^T V and N = h^T D: dV = xi h N and dh = xi (D M^T + V N^T).
                    h, dh = p.hidden + (r - 1) * level, b.dH_full + (r - 1) * level
                    M, N = (
                        p.grams + (steps_before(p, k) + i) * 2 * p.small,
                        b.d_grams + (steps_before(p, k) + i) * 2 * p.small,
                    )
                    c = gram_steps.gram(
                        c, panels, D, L, H, p.nodes, p.height, x=h, y=X, channels=p.channels, out=p.blocks
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
                            c, rows, panels, D, L, H, x=x, gram=small, channels=p.channels, scale=s.xi, out=target,
                            y=V, dots=dots, dots_level=b.dot_levels, level=b.levels + i * vector,
                        )  # fmt: skip
                X, other = other, X
            if p.feedback:
                c = against_the_chain(c, p, up, panels, D, L, H, A, top, b.dV, dV_0, s.one)
                dH = dV_0
            if p.affinity == FULL:
                dH = b.dH_full + (k - 1) * level
            elif p.affinity == EDGES:
                dB, add = b.dB + (k - 1) * p.matrix, dV_0 if p.feedback else none
                if b.by_rows:
                    c = attention_steps.scatter(c, columns, D, H, values=dB, entries=columns.order, out=b.by_rows)
                    if p.exchange:
                        c = steps.exchange(c, p.exchange, VALUES_BACK, b.by_rows)
                c = steps.aggregate_both(
                    c, columns, panels, D, L, H, A, values=dB, y=p.hidden + (k - 1) * level, scale=s.xi, add=add,
                    out=b.dH, dots=b.dot_xi, other=rows, other_values=b.by_rows,
                )  # fmt: skip
                dH = b.dH
        if p.hidden or (K == 0 and b.coefficients):  # Line 5.
            for half in range(p.halves):
                c = steps.split(
                    c, half_of(rows, half), panels, D, L, H, x=dH, scale_one=s.lam, one=b.D, scale_other=s.own,
                    other=b.dZ, adds=K > 0, dots=b.dot_Z, y=Z,
                )  # fmt: skip
                c = exchanged(c, p, half, b.D)
            c = steps.aggregate_inner(
                c, columns, panels, D, L, P, H, A, x=b.D, scale_x=s.one, y=Z, values=p.G, scale_values=s.one,
                add=b.dZ, out=none, out_values=b.dZ, products=b.direct, dots=b.dot_terms, dots_level=b.dot_levels,
                level=b.levels,
            )  # fmt: skip
        if p.has_context and not p.feedback:
            c = against_the_chain(c, p, up, panels, D, L, H, A, K * T, b.dV, b.dZ, s.one)
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
            c = attention_steps.scatter(c, rows, D, H, values=b.dG, entries=p.entries, out=b.dG_given)
        if b.out:
            steps.from_rows(c, rows, panels, D, L, H, rows=b.dZ, channels=p.channels, nodes=p.order, out=b.out)

    return compiled_for_c(run)


@cache
def attend_backward(constants: Constants) -> CFunction:
    """The gradient of :func:`attend`, added to that of the rows."""
    D, L, _, H, A = constants

    def run(address: Any) -> None:
        side, columns, panels = operands(address)
        p = unpack(address, OWN, Attend)
        c = attention_steps.softmax_backward(
            p.counters, side, D, H, A, dst=p.dst, src=p.src, edge=0, slope=p.slope, softmax=p.softmax, grad=p.grad,
            grad_logit=p.grad_logit, grad_dst=p.grad_dst,
        )  # fmt: skip
        if p.exchange:
            c = steps.exchange(c, p.exchange, VALUES, p.grad_logit)
        c = attention_steps.sums(c, columns, D, H, A, values=p.grad_logit, out=p.grad_src)
        c = attention_steps.add_logits(
            c, side, panels, D, L, H, dst=p.grad_dst, src=p.grad_src, att_dst=p.att_dst, att_src=p.att_src, out=p.rows
        )
        if p.out:
            steps.from_rows(c, side, panels, D, L, H, rows=p.rows, channels=p.channels, nodes=p.order, out=p.out)

    return compiled_for_c(run)
