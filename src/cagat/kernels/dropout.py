"""Dropout whose random numbers cost little.

torch draws one number after the other from one sequence: on PubMed the mask of G takes as long as several products.
Here the fate of an element is a hash of its place and of a seed, which torch draws. Elements are then independent of
each other, of threads and of vector lanes, and the backward pass makes the mask again instead of keeping it. And who
holds only some rows of a matrix can draw the very mask that all of it would have got.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op
from torch.nn import functional as F


def dropout(x: Tensor, p: float, training: bool, global_rows: Tensor | None = None) -> Tensor:
    """As :func:`torch.nn.functional.dropout`: each element is 0 with probability p, else divided by 1 - p.

    Args:
        x: What is dropped from.
        p: With which probability.
        training: Whether anything is dropped at all.
        global_rows: If ``x`` holds some rows of a larger matrix, their numbers there (int64): given the same seed, they
            get the mask that they have there.
    """
    if not training or not 0 < p < 1:
        return F.dropout(x, p, training)
    has_kernel = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    if not has_kernel and global_rows is None:
        return F.dropout(x, p, training)
    seed = torch.randint(0, 2**62, (1,))
    if has_kernel:
        dropped: Tensor = seeded_dropout(x, seed, p, global_rows)
        return dropped
    assert global_rows is not None
    mask: Tensor = seeded_dropout(torch.ones(x.shape), seed, p, global_rows.cpu())
    return x * mask.to(x.device, x.dtype)


@custom_op("cagat::dropout", mutates_args=())
def seeded_dropout(x: Tensor, seed: Tensor, p: float, global_rows: Tensor | None = None) -> Tensor:
    """Dropout as the seed has it."""
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.kernels import numba_products

    return numba_products.dropout(x, int(seed), p, global_rows)


seeded_dropout.register_fake(
    lambda x, seed, p, global_rows=None: torch.empty_like(x, memory_format=torch.contiguous_format)
)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, global_rows = inputs
    ctx.save_for_backward(seed, global_rows)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    seed, global_rows = ctx.saved_tensors
    return seeded_dropout(grad, seed, ctx.p, global_rows), None, None, None


seeded_dropout.register_autograd(_backward, setup_context=_setup)
