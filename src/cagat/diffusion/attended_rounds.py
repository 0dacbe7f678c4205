"""GAT's attention and the fused rounds on it, in one program, with the gradient of both.

By itself the attention would be made in the order of the given graph, and the rounds would first put it into the local
one; its logits, their gradients, and what autograd does between operators took longer on Cora than GAT's products do.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from cagat.diffusion.fused_backward import rounds_backward
from cagat.diffusion.fused_forward import FusedResult, run_rounds
from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels.numba_products import dropout


class AttentionWeights(NamedTuple):
    """What GAT's attention is made with.

    Attributes:
        dst: The weights of the targets' features, ``(1, heads, channels)``.
        src: The weights of the sources' features.
        slope: LeakyReLU's slope.
        p: The share of entries that are dropped.
        seed: What decides on which they are.
    """

    dst: Tensor
    src: Tensor
    slope: float
    p: float
    seed: int


class MadeAttention(NamedTuple):
    """GAT's attention in the local order of the entries, and what its gradient needs.

    Attributes:
        logits: What targets and sources give to the logits, ``(2, n, padded heads)``.
        softmax: G before dropout, ``(entries, padded heads)``.
        dropped: G after dropout, empty where nothing is dropped.
    """

    logits: Tensor
    softmax: Tensor
    dropped: Tensor

    @property
    def G(self) -> Tensor:
        """What the rounds work on."""
        return self.dropped if self.dropped.numel() else self.softmax


def attended_forward(problem: FusedProblem, Z: Tensor, weights: AttentionWeights) -> tuple[FusedResult, MadeAttention]:
    """Run all rounds on features of shape ``(n, heads, channels)`` and the attention between them."""
    program, chain = problem.program(), problem.rows(problem.depth + 1)
    logits, softmax = _heads_of_nodes(problem), problem.values()
    program.to_rows(chain[0], Z, problem.order.nodes)
    program.logits(logits[0], logits[1], chain[0], *_as_rows(problem, weights))
    program.softmax(softmax, logits[0], logits[1], None, weights.slope)
    dropped = softmax.new_empty(0)
    if weights.p > 0:
        program.run()
        dropped = _dropped(problem, softmax, weights)
    attention = MadeAttention(logits, softmax, dropped)
    return run_rounds(problem, program, chain, attention.G), attention


def attended_backward(
    problem: FusedProblem,
    kept: tuple[Tensor, Tensor, Tensor],
    attention: MadeAttention,
    weights: AttentionWeights,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients at Z and at the weights, given what the forward pass kept and the gradient at H."""
    program, logits = problem.program(), attention.logits
    dV, dG = rounds_backward(problem, program, kept, attention.G, grad)
    if weights.p > 0:
        program.run()
        dG = _dropped(problem, dG, weights)
    at_entries, at_nodes = problem.values(), _heads_of_nodes(problem)
    dst, src = at_nodes.unbind()
    program.softmax_backward(at_entries, dst, logits[0], logits[1], None, weights.slope, attention.softmax, dG)
    program.column_sums(src, at_entries)
    program.add_logits(dV, dst, src, *_as_rows(problem, weights))
    dZ = program.from_rows(dV, problem.order.nodes)
    program.run()
    # Of all products of a channel of one head with another head's gradient, those with its own. With the short side
    # first they take a quarter of the time of V.t() @ dst.
    heads, V = problem.layout.padded_heads, kept[0][0]
    products = torch.stack([side.t() @ V for side in (dst, src)]).view(2, heads, -1, heads)
    by_channel = products.diagonal(dim1=1, dim2=3)[:, : problem.layout.channels, : problem.layout.heads]
    d_dst, d_src = by_channel.transpose(1, 2)[:, None].contiguous().unbind()
    return dZ(), d_dst.clone(), d_src.clone()


def _dropped(problem: FusedProblem, values: Tensor, weights: AttentionWeights) -> Tensor:
    """Values at the entries, dropped as they would be in the order of the given graph."""
    return dropout(values, weights.seed, weights.p, problem.order.entries, problem.layout.heads)


def _heads_of_nodes(problem: FusedProblem) -> Tensor:
    nodes, heads = problem.order.pattern.num_rows, problem.layout.padded_heads
    return torch.empty(2, nodes, heads, dtype=problem.layout.dtype)


def _as_rows(problem: FusedProblem, weights: AttentionWeights) -> tuple[Tensor, Tensor]:
    return problem.layout.rows(weights.dst).contiguous(), problem.layout.rows(weights.src).contiguous()
