"""The features that the rounds end in, the fastest way there is."""

from typing import Any

import torch
from torch import Tensor

from cagat.diffusion.attended_operator import attended
from cagat.diffusion.by_heads import features_by_heads
from cagat.diffusion.diffusion import Coefficients, Diffusion, is_zero
from cagat.diffusion.fused_operator import as_tensors, fused_diffusion, fused_problem
from cagat.kernels import CSRGraph
from cagat.kernels.row_layout import RowLayout


def diffused_features(
    Z: Tensor, G: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion
) -> Tensor:
    """As :func:`~cagat.diffusion.diffuse`, where only the features are wanted and not the attention.

    What the paper does by default is one operator with a gradient written by hand. The other readings, learnt
    coefficients, other devices than the CPU and graphs that are parted among processes are made of single products.
    """
    if G.dtype == Z.dtype and _is_fused(Z, graph, coefficients, diffusion):
        if coefficients.lam == 0:
            return Z.clone()
        tensors = as_tensors(graph, diffusion.normalization, Z.dtype)
        H: Tensor = fused_diffusion(tensors, Z, G, *_numbers(coefficients, diffusion))[0]
        return H
    return features_by_heads(Z, G, graph, coefficients, diffusion)


def attended_features(
    Z: Tensor,
    weights: tuple[Tensor, Tensor],
    graph: CSRGraph,
    coefficients: Coefficients,
    diffusion: Diffusion,
    *,
    negative_slope: float,
    dropout: float,
) -> Tensor | None:
    """As :func:`diffused_features`, of GAT's attention between the features; ``None`` where that is not one operator.

    Args:
        Z: The features.
        weights: The weights of targets and of sources in the logits, each of shape ``(1, heads, channels)``.
        graph: The graph.
        coefficients: Numbers.
        diffusion: The switches.
        negative_slope: LeakyReLU's slope.
        dropout: The probability with which an entry of the attention is dropped.
    """
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.diffusion.fused_heads import keeps_results

    if not _is_fused(Z, graph, coefficients, diffusion) or coefficients.lam == 0 or dropout == 1:
        return None
    tensors, numbers = as_tensors(graph, diffusion.normalization, Z.dtype), _numbers(coefficients, diffusion)
    if not keeps_results(fused_problem(tensors, Z, *numbers)):
        return None
    seed = torch.randint(0, 2**62, (1,)) if dropout > 0 else torch.zeros(1, dtype=torch.long)
    return attended(tensors, Z, *weights, seed, dropout, negative_slope, *numbers)


def _numbers(coefficients: Coefficients, diffusion: Diffusion) -> tuple[Any, ...]:
    return (*coefficients, diffusion.K, diffusion.T, diffusion.normalization == "walk")


def _is_fused(Z: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion) -> bool:
    """Whether there is one operator for such a diffusion: it is what the paper does by default, on the CPU."""
    if not graph.is_whole or any(isinstance(coefficient, Tensor) for coefficient in coefficients):
        return False
    if diffusion.support == "edges" or diffusion.feedback:
        return False
    return (diffusion.affinity == "edges" or is_zero(coefficients.xi)) and _has_steps(Z, graph)


def _has_steps(Z: Tensor, graph: CSRGraph) -> bool:
    """Whether row programs can work on such features and such a graph."""
    if Z.device.type != "cpu" or Z.dtype not in (torch.float32, torch.float64):
        return False
    return RowLayout(Z.size(1), Z.size(2), Z.dtype).is_possible and graph.pattern.col.dtype == torch.int32
