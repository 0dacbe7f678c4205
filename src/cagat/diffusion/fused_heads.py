"""The fused rounds, all heads at once or, where that would take too much memory, a few at a time.

Heads meet nowhere in the diffusion. On a large graph it can therefore be run for some heads after the others, and what
the gradient needs can be made again instead of being kept: a quarter of the heads takes a quarter of the memory.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from cagat.diffusion.fused_backward import fused_backward
from cagat.diffusion.fused_forward import FusedResult, fused_forward
from cagat.diffusion.fused_problem import FusedProblem
from cagat.memory import total_memory

# Above so many bytes nothing is kept, and heads are worked on in groups that take no more than that. Groups cost time
# twice: the forward pass is repeated, and short rows come from main memory at half the speed of long ones
# (docs/performance.md). A step takes about four times what it keeps, so this leaves a third of the machine to others.
RECOMPUTE_ABOVE = total_memory() // 6


def keeps_results(problem: FusedProblem) -> bool:
    """Whether the forward pass keeps what the backward pass needs."""
    return problem.kept_bytes <= RECOMPUTE_ABOVE


def forward_by_heads(problem: FusedProblem, Z: Tensor, G: Tensor) -> FusedResult:
    """As :func:`fused_forward`, which keeps nothing on a large graph."""
    if keeps_results(problem):
        return fused_forward(problem, Z, G)
    H = torch.empty_like(Z, memory_format=torch.contiguous_format)
    for heads, part in _groups(problem):
        H[:, heads] = fused_forward(part, Z[:, heads], G[:, heads]).H
    return FusedResult(H, Z.new_empty(0), Z.new_empty(0), Z.new_empty(0))


def backward_by_heads(
    problem: FusedProblem, kept: tuple[Tensor, Tensor, Tensor], Z: Tensor, G: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """As :func:`fused_backward`; what was not kept is made again."""
    if keeps_results(problem):
        return fused_backward(problem, *kept, G, grad)
    dZ, dG = (torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (Z, G))
    for heads, part in _groups(problem):
        made = fused_forward(part, Z[:, heads], G[:, heads])
        gradients = fused_backward(part, made.chain, made.hidden, made.B, G[:, heads], grad[:, heads])
        dZ[:, heads], dG[:, heads] = gradients
    return dZ, dG


def _groups(problem: FusedProblem) -> Iterator[tuple[slice, FusedProblem]]:
    heads = problem.layout.heads
    size = max(1, RECOMPUTE_ABOVE * heads // problem.kept_bytes)
    for first in range(0, heads, size):
        yield slice(first, first + size), problem.with_heads(min(size, heads - first))
