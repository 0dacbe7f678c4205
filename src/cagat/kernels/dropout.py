"""Dropout whose random numbers cost little.

torch draws one number after the other from one sequence: on PubMed the mask of G takes as long as several products.
Here the fate of an element is a hash of its place and of a seed, which torch draws. Elements are then independent of
each other, of threads and of vector lanes, and the backward pass makes the mask again instead of keeping it.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op
from torch.nn import functional as F


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """As :func:`torch.nn.functional.dropout`: each element is 0 with probability p, else divided by 1 - p."""
    if not training or not 0 < p < 1 or x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
        return F.dropout(x, p, training)
    seed = torch.randint(0, 2**62, (1,))
    dropped: Tensor = seeded_dropout(x, seed, p)
    return dropped


@custom_op("cagat::dropout", mutates_args=())
def seeded_dropout(x: Tensor, seed: Tensor, p: float) -> Tensor:
    """Dropout as the seed has it."""
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.kernels import numba_products

    return numba_products.dropout(x, int(seed), p)


seeded_dropout.register_fake(lambda x, seed, p: torch.empty_like(x, memory_format=torch.contiguous_format))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.p = inputs[2]


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return seeded_dropout(grad, ctx.saved_tensors[0], ctx.p), None, None


seeded_dropout.register_autograd(_backward, setup_context=_setup)
