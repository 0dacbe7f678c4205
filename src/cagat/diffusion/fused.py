r"""Algorithm 1 as two compiled passes over the graph: :func:`attend` makes G (lines 3 and 4), :func:`forward` the rest.

Their gradient is in :mod:`~cagat.diffusion.fused_backward`.

With :math:`V_i = (\bar{A}^T)^i V_0` and :math:`B_r = (1 - \alpha) G + \xi Q(H_{r-1})`, round k goes down the chain to
level kT, multiplies by G, and comes up again through the steps of all rounds :math:`r \le k`:

.. math::
    Y_{kT} = G V_{kT}, \qquad Y_i = \alpha \bar{A} Y_{i+1} + B_r V_i, \qquad
    H_k = \lambda Y_0 + (1 - \lambda) Z.

The chain begins with Z, and all rounds share it; with feedback each has its own, which begins with
:math:`V_0 = H_{k-1}`. For a walk it is :math:`V_i = \bar{A}^i V_0`. With affinity on all pairs,
:math:`Q V = H (H^T V)` goes by a small matrix per head.

On a graph in parts the same passes run on the rows of each process. A step whose rows others read has two halves: these
rows, which are then on their way, and the rest, after which those of the others must have come.
"""

# ruff: noqa: N815  The names are those of the mathematics.

from functools import cache
from typing import Any, NamedTuple

from cagat.kernels import attention_steps, gram_steps, steps
from cagat.kernels.compiled import CFunction, compiled_for_c
from cagat.kernels.exchange import SEND, SEND_VECTORS, WAIT
from cagat.kernels.row_passes import OWN, Constants, operands
from cagat.kernels.simd import inlined, unpack
from cagat.kernels.steps import Side, half_of

NO_AFFINITY, EDGES, FULL = 0, 1, 2
"""Where features enter the attention."""


class Attend(NamedTuple):
    """Addresses and numbers for :func:`attend` and :func:`attend_backward`."""

    counters: int = 0
    channels: int = 0
    order: int = 0
    Z: int = 0
    rows: int = 0
    att_dst: int = 0
    att_src: int = 0
    slope: int = 0
    dst: int = 0
    src: int = 0
    softmax: int = 0
    grad: int = 0
    grad_logit: int = 0
    grad_dst: int = 0
    grad_src: int = 0
    out: int = 0
    exchange: int = 0
    halves: int = 1


class Scales(NamedTuple):
    """Vectors of heads."""

    one: int
    alpha: int
    rest: int  # 1 - alpha
    xi: int
    lam: int
    own: int  # 1 - lam
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

    Z: int = 0  # As given; 0 if they are in the chain already.
    given: int = 0  # G as given, or 0.
    Y: int = 0
    other_Y: int = 0
    H: int = 0  # 0 if only the chain and B are to be made again.
    out: int = 0  # As they are returned; 0 if H is taken.


SCALES = OWN + len(Common._fields)
PASS = SCALES + len(Scales._fields)


@inlined
def steps_before(p: Any, k: int) -> Any:
    """How many steps there are in all rounds before round k, each of which goes through those of the earlier ones."""
    if p.has_context:
        return p.steps * k * (k - 1) // 2
    return k - 1


@inlined
def exchanged(c: int, p: Any, half: int, rows: int) -> int:
    """Rows whose first half has been made are sent to those who need them, and after the other half they are there."""
    if p.exchange:
        c = steps.exchange(c, p.exchange, WAIT if half > 0 else SEND, rows)
    return c


@cache
def attend(constants: Constants) -> CFunction:
    """GAT's attention between features: rows are laid out, and their logits and the softmax are made."""
    D, L, _, H, A = constants

    def run(address: Any) -> None:
        side, _, panels = operands(address)
        p = unpack(address, OWN, Attend)
        c = p.counters
        if p.Z:
            c = steps.to_rows(c, side, panels, D, L, H, features=p.Z, channels=p.channels, nodes=p.order, out=p.rows)
        for half in range(p.halves):
            c = attention_steps.logits(
                c, half_of(side, half), panels, D, L, H, x=p.rows, att_dst=p.att_dst, att_src=p.att_src, dst=p.dst,
                src=p.src,
            )  # fmt: skip
            if p.exchange:
                c = steps.exchange(c, p.exchange, WAIT if half > 0 else SEND_VECTORS, p.src)
        attention_steps.softmax(c, side, D, H, A, dst=p.dst, src=p.src, edge=0, slope=p.slope, out=p.softmax)

    return compiled_for_c(run)


@cache
def forward(constants: Constants) -> CFunction:
    """The pass of Algorithm 1 from line 5 on, or only its chain and B; see :class:`Common` and :class:`Forward`."""
    D, L, P, H, A = constants

    def run(address: Any) -> None:
        rows, columns, panels = operands(address)
        p, s, f = unpack(address, OWN, Common), unpack(address, SCALES, Scales), unpack(address, PASS, Forward)
        down = rows if p.walks else columns
        # Abar^T V and G V share the rows they read where their entries are in the same positions.
        shares = (p.walks or p.symmetric) and not p.feedback
        both = Side(rows.blocks, rows.bounds, rows.rowptr, rows.col, 0, down.weight, rows.last, rows.outer)
        # What others read of a round's features.
        is_read = p.affinity == EDGES or p.feedback
        K, T, level, Z = p.rounds, p.steps, p.level, p.chain
        c, none = p.counters, p.nothing
        added = Z if p.adds_Z else none  # (1 - lam) Z
        if f.given:
            c = attention_steps.gather(c, rows, D, H, values=f.given, entries=p.entries, out=p.G)
        for half in range(p.halves):
            if f.Z:
                c = steps.to_rows(
                    c, half_of(rows, half), panels, D, L, H, features=f.Z, channels=p.channels, nodes=p.order, out=Z
                )
            c = exchanged(c, p, half, Z)

        made = 0  # The last level of the chain.
        if f.H and (K == 0 or p.hidden):  # Line 5: H = lam G Z + (1 - lam) Z.
            H_0 = p.hidden if K > 0 else f.H
            made = 1 if shares and K > 0 and p.has_context else 0
            for half in range(p.halves):
                if made == 1:
                    c = steps.aggregate_twice(
                        c, half_of(both, half), panels, D, L, P, H, A, x=Z, values=p.G, scale_values=s.lam, add=added,
                        scale_add=s.own, out=Z + level, out_values=H_0,
                    )  # fmt: skip
                    c = exchanged(c, p, half, Z + level)
                else:
                    c = steps.aggregate(
                        c, half_of(rows, half), panels, D, L, H, A, x=none, scale_x=s.one, values=p.G, y=Z,
                        scale_y=s.lam, add=added, scale_add=s.own, out=H_0,
                    )  # fmt: skip
                if is_read and K > 0:
                    c = exchanged(c, p, half, H_0)
        for k in range(1, K + 1):
            H_before, H_after = p.hidden + (k - 1) * level, p.hidden + k * level if k < K else f.H
            if p.affinity == EDGES:
                B_k = p.B + (k - 1) * p.matrix
                c = steps.inner(
                    c, rows, panels, D, L, H, A, x=H_before, y=H_before, scale=s.xi, add=p.G, scale_add=s.rest,
                    out=B_k,
                )  # fmt: skip
            V_0, chain = Z, Z
            if p.feedback:
                V_0, chain, made = H_before, Z + steps_before(p, k) * level, 0
            top, Y, other = k * T if p.has_context else 0, f.Y, f.other_Y
            for i in range(made, top):  # Down the chain.
                V = chain + i * level if i > 0 else V_0
                for half in range(p.halves):
                    c = steps.aggregate(
                        c, half_of(down, half), panels, D, L, H, A, x=V, scale_x=s.one, values=none, y=none,
                        scale_y=s.one, add=none, scale_add=s.one, out=chain + (i + 1) * level,
                    )  # fmt: skip
                    c = exchanged(c, p, half, chain + (i + 1) * level)
            made = top + 1 if f.H and shares and p.has_context and k < K else top
            if not f.H:
                continue
            for half in range(p.halves if p.has_context else 0):
                if made > top:  # Y = G V_kT, and the next level of the chain.
                    c = steps.aggregate_twice(
                        c, half_of(both, half), panels, D, L, P, H, A, x=chain + top * level, values=p.G,
                        scale_values=s.one, add=none, scale_add=s.one, out=chain + (top + 1) * level, out_values=Y,
                    )  # fmt: skip
                    c = exchanged(c, p, half, chain + (top + 1) * level)
                else:
                    c = steps.aggregate(
                        c, half_of(rows, half), panels, D, L, H, A, x=none, scale_x=s.one, values=p.G,
                        y=chain + top * level, scale_y=s.one, add=none, scale_add=s.one, out=Y,
                    )  # fmt: skip
                c = exchanged(c, p, half, Y)
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
                        c, half_of(rows, half), panels, D, L, H, A, x=context, scale_x=scale_Y, values=values, y=V,
                        scale_y=scale, add=add, scale_add=s.own, out=out,
                    )  # fmt: skip
                    if i > 0 or (is_read and k < K):
                        c = exchanged(c, p, half, out)
                if p.affinity == FULL:  # xi H (H^T V_i)
                    X, M = p.hidden + (r - 1) * level, p.grams + (steps_before(p, k) + i) * 2 * p.small
                    c = gram_steps.gram(
                        c, panels, D, L, H, p.nodes, p.height, x=X, y=V, channels=p.channels, out=p.blocks
                    )
                    c = gram_steps.sum_gram(
                        c, D, H, p.nodes, p.height, blocks=p.blocks, channels=p.channels, out=M,
                        transpose=M + p.small,
                    )  # fmt: skip
                    c = gram_steps.add_gram_product(
                        c, rows, panels, D, L, H, x=X, gram=M, channels=p.channels, scale=scale_Q, out=out, y=none,
                        dots=none, dots_level=none, level=none,
                    )  # fmt: skip
                Y, other = out, Y
        if f.out:
            steps.from_rows(c, rows, panels, D, L, H, rows=f.H, channels=p.channels, nodes=p.order, out=f.out)

    return compiled_for_c(run)
