r"""The rounds of Algorithm 1 as one row program.

With :math:`V_i = (\bar{A}^T)^i Z` and :math:`B_r = (1 - \alpha) G + \xi Q(H_{r-1})`, round k comes up from level kT of
the chain to level 0, through the steps of all rounds :math:`r \le k`:

.. math::
    Y^{(k)}_{kT} = G V_{kT}, \qquad Y^{(k)}_i = \alpha \bar{A} Y^{(k)}_{i+1} + B_r V_i, \qquad
    H_k = \lambda Y^{(k)}_0 + (1 - \lambda) Z.

For a walk (:attr:`~cagat.diffusion.fused_problem.FusedProblem.walks`) the chain is :math:`V_i = \bar{A}^i Z`.

The steps of round r need :math:`H_{r-1}` and no later features. So while round r comes up its last T levels, round r+1
comes up T levels further down, and so on: all rounds from r on pass through the steps of round r together, as
independent blocks. Block b there belongs to round r+b and goes from level (b+1)T to level bT.
"""

from typing import NamedTuple

from torch import Tensor

from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels.row_program import RowProgram


class FusedResult(NamedTuple):
    """The features, and what the backward pass needs.

    Attributes:
        H: The features after the last round, ``(n, heads, channels)``.
        chain: The chain V of the features Z, ``(depth + 1, n, width)``.
        hidden: The features H before each round, if there is affinity, ``(rounds, n, width)``.
        B: The matrix B of each round, if there is affinity, ``(rounds, entries, heads)``.
    """

    H: Tensor
    chain: Tensor
    hidden: Tensor
    B: Tensor


def fused_forward(problem: FusedProblem, Z: Tensor, G: Tensor) -> FusedResult:
    """Run all rounds on features of shape ``(n, heads, channels)`` and attention of shape ``(entries, heads)``."""
    program, chain, given = problem.program(), problem.rows(problem.depth + 1), problem.layout.values(G)
    G = problem.values()
    program.pick(G, given, problem.order.entries)
    program.to_rows(chain[0], Z, problem.order.nodes)
    return run_rounds(problem, program, chain, G)


_Product = tuple[Tensor, float, Tensor | None]


def _link(
    problem: FusedProblem, program: RowProgram, V: Tensor, following: Tensor | None, G: Tensor, product: _Product | None
) -> None:
    """A link of the chain, and the product with G that is wanted of its features: out, its scale, what is added."""
    turned = not problem.walks
    if product is None:
        assert following is not None, "the chain ends where a product is wanted"
        program.aggregate(following, x=V, transpose=turned)
        return
    out, scale, add = product
    if following is not None and (program.is_symmetric or not turned):
        program.aggregate_twice(
            following, out, V, G, transpose_x=turned, scale_y=scale, add=add, scale_add=1 - problem.lam
        )
        return
    program.aggregate(out, values=G, y=V, scale_y=scale, add=add, scale_add=1 - problem.lam, wait=following is None)
    if following is not None:
        program.aggregate(following, x=V, transpose=turned)


def run_rounds(problem: FusedProblem, program: RowProgram, chain: Tensor, G: Tensor) -> FusedResult:
    """Add all rounds to a program that makes the first features of the chain, and the attention, and run it."""
    alpha, lam, xi = problem.alpha, problem.lam, problem.xi
    rounds, steps = problem.rounds, problem.steps
    kept_rounds = rounds if problem.has_affinity else 0
    H, kept_hidden, kept_B = problem.rows(), problem.rows(kept_rounds), problem.values(kept_rounds)
    V, hidden, B = chain.unbind(), kept_hidden.unbind(), kept_B.unbind()
    Y = [problem.rows() for _ in range(rounds if problem.has_context else 0)]
    # The products with G: those that the rounds start with, and the features before the first round.
    products: dict[int, _Product] = {block * steps: (start, 1.0, None) for block, start in enumerate(Y, 1)}
    if problem.has_affinity or rounds == 0:
        products[0] = (hidden[0] if rounds else H, lam, V[0])
    for level in range(problem.depth + 1):
        _link(problem, program, V[level], V[level + 1] if level < problem.depth else None, G, products.get(level))

    spare: list[Tensor] = []
    for r in range(1, rounds + 1):
        values, share = G, 1 - alpha
        if problem.has_affinity:
            program.inner(B[r - 1], hidden[r - 1], hidden[r - 1], scale_x=xi, add=G, scale_add=1 - alpha)
            values, share = B[r - 1], 1.0
        for step in reversed(range(steps)):
            before = list(Y)
            for block in range(problem.blocks(r)):
                is_last = block == 0 and step == 0
                target = (hidden[r] if r < rounds else H) if is_last else (spare.pop() if spare else problem.rows())
                factor = lam if is_last else 1.0
                program.aggregate(
                    target,
                    x=Y[block] if problem.has_context else None,
                    scale_x=factor * alpha,
                    values=values,
                    y=V[block * steps + step],
                    scale_y=factor * share,
                    add=V[0] if is_last else None,
                    scale_add=1 - lam,
                    wait=block == problem.blocks(r) - 1,
                )
                if problem.has_context:
                    Y[block] = target
            spare += before
        Y = Y[1:]
    features = program.from_rows(H, problem.order.nodes)
    program.run()
    return FusedResult(features(), chain, kept_hidden, kept_B)
