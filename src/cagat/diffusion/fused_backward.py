r"""The gradient of the fused rounds, written by hand.

It walks the steps of :mod:`~cagat.diffusion.fused_forward` backwards. With D for the gradients at Y:

.. math::
    D_0 = \lambda\, dH_k, \qquad D_{i+1} = \alpha \bar{A}^T D_i, \qquad dV_i \mathrel{+}= B_r^T D_i, \qquad
    dB_r = \sum_i \langle D_i, V_i \rangle_E, \qquad dH_{r-1} = \xi (dB_r + dB_r^T) H_{r-1}

and at the end :math:`dV_{i-1} \mathrel{+}= \bar{A} dV_i` down to :math:`dV_0 = dZ`, or :math:`\bar{A}^T dV_i` for a
walk. No Y is needed.
"""

import torch
from torch import Tensor

from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels.row_program import RowProgram

Levels = tuple[Tensor, ...]


def fused_backward(
    problem: FusedProblem, chain: Tensor, hidden: Tensor, B: Tensor, G: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients at Z and at G, given what the forward pass kept and the gradient at H."""
    program, given = problem.program(), problem.layout.values(G)
    G = problem.values()
    program.pick(G, given, problem.order.entries)
    dV, values = rounds_backward(problem, program, (chain, hidden, B), G, grad)
    dZ = program.from_rows(dV, problem.order.nodes)
    dG = torch.empty_like(values)
    program.place(dG, values, problem.order.entries)
    program.run()
    return dZ(), problem.layout.unpadded(dG)


def rounds_backward(
    problem: FusedProblem, program: RowProgram, kept: tuple[Tensor, Tensor, Tensor], G: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Add the gradient of all rounds to a program.

    Gives the gradients at Z, as rows, and at G, both in the local order; they are there when the program has been run.
    """
    return _Backward(problem, program, kept, G).add(grad)


class _Backward:
    """The steps of the gradient. Gradients at G and B are in the order of the transpose's entries.

    In that order the inner products ``<D_i, V_j>`` are made while the rows of D are read for the products with the
    transposes: a step on its own would read all rows of V once more.
    """

    def __init__(
        self, problem: FusedProblem, program: RowProgram, kept: tuple[Tensor, Tensor, Tensor], G: Tensor
    ) -> None:
        self._problem, self._program, self._G = problem, program, G
        self._V, self._hidden, self._B = (tensor.unbind() for tensor in kept)
        self._dV = problem.rows(problem.depth + 1).unbind()
        # What has been written, and is from then on added to.
        self._has_dV = [False] * (problem.depth + 1)
        self._dG = problem.values()

    def add(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        problem, program = self._problem, self._program
        dH = problem.rows()
        program.to_rows(dH, grad, problem.order.nodes)
        dG = problem.values()
        if problem.rounds == 0:
            # With one product alone it costs more to bring dG into the order of the rows than to read V for it.
            program.inner(dG, dH, self._V[0], scale_x=problem.lam, wait=False)
            if problem.lam != 1:
                program.combine(self._dV[0], dH, 1 - problem.lam)
            add = self._dV[0] if problem.lam != 1 else None
            program.aggregate(self._dV[0], values=self._G, y=dH, scale_y=problem.lam, add=add, transpose=True)
        else:
            self._walk(dH)
            program.place(dG, self._dG, problem.order.pattern.perm_t)
        return self._dV[0], dG

    def _walk(self, dH: Tensor) -> None:
        problem, program = self._problem, self._program
        self._dG.zero_()
        # What enters Y where a round starts, G V, is like a round 0 whose levels are T apart.
        sizes = [problem.rounds + 1 if r == 0 else problem.levels(r) for r in range(problem.rounds + 1)]
        buffers = [problem.rows(max(sizes[parity::2])).unbind() for parity in (0, 1)]
        D = buffers[problem.rounds % 2]
        program.combine(self._dV[0], dH, 1 - problem.lam, wait=False)
        program.combine(D[0], dH, problem.lam)
        self._has_dV[0] = True
        for r in range(problem.rounds, 0, -1):
            D_before = buffers[(r - 1) % 2]
            if problem.has_affinity:
                dB = problem.values().zero_()
                self._steps(r, D, D_before, self._B[r - 1], 1.0, dB, 1.0)
                self._affinity(r, dB, D_before)
            else:
                self._steps(r, D, D_before, self._G, 1 - problem.alpha, self._dG, 1 - problem.alpha)
            D = D_before
        self._start(D)
        for level in range(problem.depth, 0, -1):
            program.aggregate(self._dV[level - 1], x=self._dV[level], add=self._dV[level - 1], transpose=problem.walks)

    def _steps(
        self, r: int, D: Levels, D_before: Levels, values: Tensor, share: float, products: Tensor, weight: float
    ) -> None:
        """Through the steps of a round, from its end to its start."""
        problem = self._problem
        blocks, steps = problem.blocks(r), problem.steps
        for step in range(steps):
            for block in range(blocks):
                level = block * steps + step
                out = None
                if problem.has_context:
                    start = block + 1 if r == 1 else (block + 1) * steps
                    out = D[level + 1] if step < steps - 1 else D_before[start]
                self._product(level, D[level], values, share, products, weight, out)

    def _affinity(self, r: int, dB: Tensor, D_before: Levels) -> None:
        """From a round's matrix B to G, and to the features of the round before."""
        problem, program, lam = self._problem, self._program, self._problem.lam
        H, scale = self._hidden[r - 1], lam * problem.xi
        program.add_values(self._dG, dB, 1 - problem.alpha, wait=False)
        if program.is_symmetric:
            program.aggregate_both(D_before[0], dB, H, scale)
        else:
            by_rows, part = problem.values(), problem.rows()
            program.place(by_rows, dB, problem.order.pattern.perm_t)
            program.aggregate(part, values=by_rows, y=H, scale_y=scale, transpose=True)
            program.aggregate(D_before[0], values=by_rows, y=H, scale_y=scale, add=part)
        # D is lam dH, and Z has the share 1 - lam in H.
        program.combine(self._dV[0], D_before[0], (1 - lam) / lam, add=self._dV[0])

    def _start(self, D: Levels) -> None:
        """Where the rounds start, with G."""
        problem = self._problem
        for block in range(0 if problem.has_affinity else 1, problem.rounds + 1 if problem.has_context else 1):
            self._product(block * problem.steps, D[block], self._G, 1.0, self._dG, 1.0)

    def _product(
        self,
        level: int,
        D: Tensor,
        values: Tensor,
        share: float,
        products: Tensor,
        weight: float,
        out: Tensor | None = None,
    ) -> None:
        """From D to the features of a level and to the entries of a matrix, and along the chain of D if it goes on."""
        dV = self._dV[level]
        self._program.aggregate_inner(
            out,
            dV,
            products,
            D,
            self._V[level],
            values,
            scale_x=self._problem.alpha,
            scale_y=share,
            add=dV if self._has_dV[level] else None,
            scale_products=weight,
        )
        self._has_dV[level] = True
