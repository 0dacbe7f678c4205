r"""The gradient of the fused rounds, written by hand.

It walks the steps of :mod:`~cagat.diffusion.fused_forward` backwards. With D for the gradients at Y:

.. math::
    D_0 = \lambda\, dH_k, \qquad D_{i+1} = \alpha \bar{A}^T D_i, \qquad dV_i \mathrel{+}= B_r^T D_i, \qquad
    dB_r = \sum_i \langle D_i, V_i \rangle_E, \qquad dH_{r-1} = \xi (dB_r + dB_r^T) H_{r-1}

and at the end :math:`dV_{i-1} \mathrel{+}= \bar{A} dV_i` down to :math:`dV_0 = dZ`. No Y is needed.
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
    def __init__(
        self, problem: FusedProblem, program: RowProgram, kept: tuple[Tensor, Tensor, Tensor], G: Tensor
    ) -> None:
        self._problem, self._program, self._G = problem, program, G
        self._V, self._hidden, self._B = (tensor.unbind() for tensor in kept)
        self._dV = problem.rows(problem.depth + 1).unbind()
        self._dG = problem.values()
        # What has been written, and is from then on added to.
        self._has_dV, self._has_dG = [False] * (problem.depth + 1), problem.has_affinity
        if self._has_dG:
            self._dG.zero_()

    def add(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        problem, program = self._problem, self._program
        dH = problem.rows()
        program.to_rows(dH, grad, problem.order.nodes)
        if problem.rounds == 0:
            self._add_to_dG([dH], [self._V[0]], problem.lam)
            if problem.lam != 1:
                program.combine(self._dV[0], dH, 1 - problem.lam)
                self._has_dV[0] = True
            self._add_to_dV(0, self._G, dH, problem.lam)
        else:
            self._walk(dH)
        return self._dV[0], self._dG

    def _walk(self, dH: Tensor) -> None:
        problem, program = self._problem, self._program
        # What enters Y where a round starts, G V, is like a round 0 whose levels are T apart.
        sizes = [problem.rounds + 1 if r == 0 else problem.levels(r) for r in range(problem.rounds + 1)]
        buffers = [problem.rows(max(sizes[parity::2])).unbind() for parity in (0, 1)]
        D = buffers[problem.rounds % 2]
        program.combine(self._dV[0], dH, 1 - problem.lam, wait=False)
        program.combine(D[0], dH, problem.lam)
        self._has_dV[0] = True
        for r in range(problem.rounds, 0, -1):
            D_before = buffers[(r - 1) % 2]
            self._steps(r, D, D_before)
            self._affinity(r, D, D_before)
            D = D_before
        self._start(D)
        for level in range(problem.depth, 0, -1):
            program.aggregate(self._dV[level - 1], x=self._dV[level], add=self._dV[level - 1])

    def _steps(self, r: int, D: Levels, D_before: Levels) -> None:
        """Through the steps of a round, from its end to its start."""
        problem = self._problem
        values, share = (self._B[r - 1], 1.0) if problem.has_affinity else (self._G, 1 - problem.alpha)
        blocks, steps = problem.blocks(r), problem.steps
        for step in range(steps):
            for block in range(blocks):
                level, wait = block * steps + step, block == blocks - 1
                if not problem.has_context:
                    self._add_to_dV(0, values, D[0], share)
                    continue
                start = block + 1 if r == 1 else (block + 1) * steps
                self._program.aggregate_twice(
                    D[level + 1] if step < steps - 1 else D_before[start],
                    self._dV[level],
                    D[level],
                    values,
                    scale_x=problem.alpha,
                    scale_y=share,
                    add=self._dV[level] if self._has_dV[level] else None,
                    transpose=True,
                    wait=wait,
                )
                self._has_dV[level] = True

    def _affinity(self, r: int, D: Levels, D_before: Levels) -> None:
        """From a round's matrix B to G, and to the features of the round before."""
        problem, program, lam = self._problem, self._program, self._problem.lam
        levels = range(problem.levels(r))
        if not problem.has_affinity:
            self._add_to_dG([D[level] for level in levels], [self._V[level] for level in levels], 1 - problem.alpha)
            return
        dB, part, H = problem.values(), problem.rows(), self._hidden[r - 1]
        for level in levels:
            is_last = level == levels[-1]
            program.inner(
                dB,
                D[level],
                self._V[level],
                add=dB if level > 0 else None,
                out2=self._dG if is_last else None,
                scale_y=1 - problem.alpha,
            )
        scale = lam * problem.xi
        program.aggregate(part, values=dB, y=H, scale_y=scale, transpose=True)
        program.aggregate(D_before[0], values=dB, y=H, scale_y=scale, add=part)
        # D is lam dH, and Z has the share 1 - lam in H.
        program.combine(self._dV[0], D_before[0], (1 - lam) / lam, add=self._dV[0])

    def _start(self, D: Levels) -> None:
        """Where the rounds start, with G."""
        problem = self._problem
        blocks = range(0 if problem.has_affinity else 1, problem.rounds + 1 if problem.has_context else 1)
        for block in blocks:
            self._add_to_dV(block * problem.steps, self._G, D[block], 1.0)
        self._add_to_dG([D[block] for block in blocks], [self._V[block * problem.steps] for block in blocks], 1.0)

    def _add_to_dV(self, level: int, values: Tensor, D: Tensor, scale: float) -> None:
        dV = self._dV[level]
        add = dV if self._has_dV[level] else None
        self._program.aggregate(dV, values=values, y=D, scale_y=scale, add=add, transpose=True)
        self._has_dV[level] = True

    def _add_to_dG(self, D: list[Tensor], V: list[Tensor], scale: float) -> None:
        for ours, theirs in zip(D, V, strict=True):
            self._program.inner(self._dG, ours, theirs, scale_x=scale, add=self._dG if self._has_dG else None)
            self._has_dG = True
