"""The rounds without gradients, a few heads at a time where all at once would take too much memory."""

import torch
from torch import Tensor

from cagat.diffusion.diffuse import diffuse
from cagat.diffusion.diffusion import Coefficients, Diffusion
from cagat.kernels import CSRGraph

# Above so many bytes of features, heads, which meet nowhere in the diffusion, are worked on in groups.
MOST_BYTES = 2**30


def features_by_heads(
    Z: Tensor, G: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion
) -> Tensor:
    """The features that :func:`~cagat.diffusion.diffuse` ends in; only for evaluation are they made in groups."""
    # Processes that hold parts of a graph must all do the same, whatever they hold.
    at_once = torch.is_grad_enabled() or not graph.is_whole
    group = Z.size(1) if at_once else heads_at_a_time(Z, diffusion.K * diffusion.T)
    if group == Z.size(1):
        return diffuse(Z, G, graph, coefficients, diffusion).H
    H = torch.empty_like(Z)
    for first in range(0, Z.size(1), group):
        heads = slice(first, first + group)
        H[:, heads] = diffuse(Z[:, heads], G[:, heads], graph, coefficients.of_heads(heads), diffusion).H
    return H


def heads_at_a_time(Z: Tensor, steps: int) -> int:
    """How many heads fit."""
    # The features of all steps stand side by side in one wide product, and its result is as wide.
    head = 2 * (steps + 1) * Z.size(0) * Z.size(2) * Z.itemsize
    return max(1, min(Z.size(1), MOST_BYTES // max(1, head)))
