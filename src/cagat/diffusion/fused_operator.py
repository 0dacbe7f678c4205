"""The fused rounds as a torch operator."""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from cagat.diffusion.coefficients import Coefficients
from cagat.diffusion.diffuse import diffuse
from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels import CSRGraph, CSRPattern
from cagat.kernels.row_layout import RowLayout


def _problem(
    pattern: list[Tensor], Z: Tensor, alpha: float, lam: float, xi: float, rounds: int, steps: int
) -> FusedProblem:
    *indices, weight, weight_t = pattern
    layout = RowLayout(Z.size(1), Z.size(2), Z.dtype)
    return FusedProblem.reduced(CSRPattern(*indices), (weight, weight_t), layout, (alpha, lam, xi), rounds, steps)


@custom_op("cagat::fused_diffusion", mutates_args=())
def fused_diffusion(
    pattern: list[Tensor], Z: Tensor, G: Tensor, alpha: float, lam: float, xi: float, rounds: int, steps: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The features after all rounds, and what the gradient needs; see :class:`~cagat.diffusion.FusedResult`."""
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.diffusion.fused_forward import fused_forward

    return fused_forward(_problem(pattern, Z, alpha, lam, xi, rounds, steps), Z.detach(), G.detach())


@fused_diffusion.register_fake
def _(
    pattern: list[Tensor], Z: Tensor, G: Tensor, alpha: float, lam: float, xi: float, rounds: int, steps: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    problem = _problem(pattern, Z, alpha, lam, xi, rounds, steps)
    kept = problem.rounds if problem.has_affinity else 0
    row = (Z.size(0), problem.layout.width)
    return (
        torch.empty_like(Z, memory_format=torch.contiguous_format),
        Z.new_empty(problem.depth + 1, *row),
        Z.new_empty(kept, *row),
        Z.new_empty(kept, G.size(0), problem.layout.padded_heads),
    )


@custom_op("cagat::fused_diffusion_backward", mutates_args=())
def fused_diffusion_gradients(
    pattern: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    chain: Tensor,
    hidden: Tensor,
    B: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients at Z and at G; itself not differentiable."""
    from cagat.diffusion.fused_backward import fused_backward

    problem = _problem(pattern, Z, alpha, lam, xi, rounds, steps)
    return fused_backward(problem, chain, hidden, B, G.detach(), grad.detach())


@fused_diffusion_gradients.register_fake
def _(
    pattern: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    chain: Tensor,
    hidden: Tensor,
    B: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    contiguous = torch.contiguous_format
    return torch.empty_like(Z, memory_format=contiguous), torch.empty_like(G, memory_format=contiguous)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    pattern, Z, G, *numbers = inputs
    ctx.save_for_backward(*pattern, Z, G, *output[1:])
    ctx.numbers = numbers
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    *pattern, Z, G, chain, hidden, B = ctx.saved_tensors
    nothing = (None,) * 5
    if grad is None:
        return ([None] * len(pattern), None, None, *nothing)
    if torch.is_grad_enabled():  # Somebody wants to differentiate the gradient: backward(create_graph=True).
        gradients = _differentiable_gradients(pattern, Z, G, ctx.numbers, grad)
    else:
        gradients = fused_diffusion_gradients(pattern, Z, G, *ctx.numbers, chain, hidden, B, grad)
    return ([None] * len(pattern), *gradients, *nothing)


def _differentiable_gradients(
    pattern: list[Tensor], Z: Tensor, G: Tensor, numbers: list[Any], grad: Tensor
) -> tuple[Tensor, ...]:
    """The same gradients, through the rounds made of single products."""
    *indices, weight, weight_t = pattern
    alpha, lam, xi, rounds, steps = numbers
    graph = CSRGraph.from_transition(CSRPattern(*indices), (weight, weight_t))
    H = diffuse(Z, G, graph, Coefficients(alpha, lam, xi), K=rounds, T=steps).H
    return torch.autograd.grad(H, (Z, G), grad, create_graph=True, materialize_grads=True)


fused_diffusion.register_autograd(_backward, setup_context=_setup)
