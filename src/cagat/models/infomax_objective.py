"""The objective of Deep Graph Infomax and its gradient, written by hand, on the CPU.

On PubMed the features take 40 MB, so that what an epoch costs is how often they are read and written. Autograd over
single operations does that some thirty times. Here they are gathered once for the graph and once for the shuffled one,
whose features are used while they are in the first cache and never written, and read once more when the summary is
known. The gradient at the output of the encoder is an outer product, and behind the activation all that it needs to
know of a feature is whether it is positive: a bit. What is gathered for the gradient then fits in the second cache.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cagat.kernels import CSRPattern
from cagat.kernels.row_threads import row_threads
from cagat.kernels.scratch import scratch
from cagat.kernels.thread_count import kernel_threads
from cagat.models.infomax_loops import BLOCK, encode, hand_down, judge, judge_shuffled


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
        shuffled = shuffle.to(torch.int32)[pattern.col]

        def summed(loop: Any, *arguments: Any) -> tuple[Tensor, ...]:
            """What a loop sums over the nodes: of all features what is positive, what is not, and what they weigh."""
            sums = z.new_empty(-(-n // BLOCK), 3, channels)
            firsts = pattern.rowptr.numpy()[np.minimum(np.arange(len(sums) + 1) * BLOCK, n)]
            row_threads.run(loop, firsts, (*arguments, _address(sums), n, channels, D), channels, kernel_threads())
            return sums.sum(dim=0).unbind()

        def gathered(col: Tensor) -> tuple[int, ...]:
            return (*(_address(tensor) for tensor in (pattern.rowptr, col, values[0], z, bias)), col.numel() - 1)

        hidden = scratch(n, channels, dtype=z.dtype)
        above, below, count = summed(encode, *gathered(pattern.col), _address(hidden), _address(signs[0]))
        summary = ((above + slope * below) / n).sigmoid()
        v = weight @ summary
        scale = (_address(v), _address(slope))
        real = summed(judge, _address(hidden), *scale, gates[0].numpy(), losses[0].numpy())
        fake = summed(
            judge_shuffled, *gathered(shuffled), _address(signs[1]), *scale, gates[1].numpy(), losses[1].numpy()
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
            pattern = (_address(rowptr_t), _address(col_t), value_t.numpy())
            bits = (_address(signs[0]), _address(signs[1]))
            rows = (gates[0].numpy(), gates[1].numpy(), _address(v), _address(shared), slope.detach().numpy())
            longest = int(rowptr_t.diff().max())
            arguments = (
                *pattern,
                back.numpy(),
                *bits,
                *rows,
                _address(grad_z),
                longest,
                v.numel(),
                v.numpy().dtype.type,
            )
            row_threads.run(hand_down, rowptr_t.numpy(), arguments, v.numel(), kernel_threads())
        grad_bias, grad_slope, grad_weight = (gradient * grad for gradient in ctx.gradients)
        return grad_z, None, grad_bias, grad_slope, grad_weight, None, None


def _address(tensor: Tensor) -> int:
    assert tensor.is_contiguous()
    return tensor.data_ptr()
