"""The features that the rounds end in, the fastest way there is."""

import torch
from torch import Tensor

from cagat.diffusion.by_heads import features_by_heads
from cagat.diffusion.coefficients import Coefficients, is_zero
from cagat.diffusion.fused_operator import as_tensors, fused_diffusion
from cagat.kernels import CSRGraph
from cagat.kernels.row_layout import RowLayout


def diffused_features(
    Z: Tensor,
    G: Tensor,
    graph: CSRGraph,
    coefficients: Coefficients,
    *,
    K: int,
    T: int,
    support: str = "full",
    affinity: str = "edges",
    feedback: bool = False,
    normalization: str = "row",
) -> Tensor:
    """As :func:`~cagat.diffusion.diffuse`, where only the features are wanted and not the attention.

    What the paper does by default is one operator with a gradient written by hand. The other readings, learnt
    coefficients, other devices than the CPU and graphs that are parted among processes are made of single products.
    """
    alpha, lam, xi = coefficients
    is_fixed = not any(isinstance(coefficient, Tensor) for coefficient in coefficients)
    is_default = support == "full" and not feedback and (affinity == "edges" or is_zero(xi))
    if is_fixed and is_default and graph.is_whole and _has_steps(Z, G, graph):
        if lam == 0:
            return Z.clone()
        tensors = as_tensors(graph, normalization, Z.dtype)
        H: Tensor = fused_diffusion(tensors, Z, G, alpha, lam, xi, K, T)[0]
        return H
    switches = {"support": support, "affinity": affinity, "feedback": feedback, "normalization": normalization}
    return features_by_heads(Z, G, graph, coefficients, K=K, T=T, **switches)


def _has_steps(Z: Tensor, G: Tensor, graph: CSRGraph) -> bool:
    """Whether row programs can work on such features and such a graph."""
    if Z.device.type != "cpu" or Z.dtype not in (torch.float32, torch.float64) or G.dtype != Z.dtype:
        return False
    return RowLayout(Z.size(1), Z.size(2), Z.dtype).is_possible and graph.pattern.col.dtype == torch.int32
