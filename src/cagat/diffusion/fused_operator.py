"""The fused rounds as a torch operator."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from cagat.diffusion.diffuse import diffuse
from cagat.diffusion.diffusion import Coefficients, Diffusion
from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels import CSRGraph, CSRPattern
from cagat.kernels.local_order import LocalOrder
from cagat.kernels.row_layout import RowLayout


def fused_problem(
    graph: list[Tensor], Z: Tensor, alpha: float, lam: float, xi: float, rounds: int, steps: int, walks: bool
) -> FusedProblem:
    """What the operator's arguments ask for."""
    order, weights = graph_of(graph)
    layout = RowLayout(Z.size(1), Z.size(2), Z.dtype)
    return FusedProblem.reduced(order, weights, layout, (alpha, lam, xi), rounds, steps, walks)


def as_tensors(graph: CSRGraph, normalization: str, dtype: torch.dtype) -> list[Tensor]:
    """What the operator takes of a graph, as its schema asks for it."""
    order = graph.local_order()
    pattern = order.pattern
    return [
        *(pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t, pattern.perm_t),
        *(order.nodes, order.nodes_back, order.entries),
        *graph.local_transition(normalization, dtype),
    ]


def graph_of(tensors: list[Tensor]) -> tuple[LocalOrder, tuple[Tensor, Tensor]]:
    """What :func:`as_tensors` took apart."""
    return LocalOrder(CSRPattern(*tensors[:5]), *tensors[5:8]), (tensors[8], tensors[9])


@custom_op("cagat::fused_diffusion", mutates_args=())
def fused_diffusion(
    graph: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The features after all rounds, and what the gradient needs; see :class:`~cagat.diffusion.FusedResult`."""
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.diffusion.fused_heads import forward_by_heads

    return forward_by_heads(fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks), Z.detach(), G.detach())


@fused_diffusion.register_fake
def _(
    graph: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from cagat.diffusion.fused_heads import keeps_results

    problem = fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks)
    H = torch.empty_like(Z, memory_format=torch.contiguous_format)
    if not keeps_results(problem):
        return H, Z.new_empty(0), Z.new_empty(0), Z.new_empty(0)
    kept = problem.rounds if problem.has_affinity else 0
    row = (Z.size(0), problem.layout.width)
    return (
        H,
        Z.new_empty(problem.depth + 1, *row),
        Z.new_empty(kept, *row),
        Z.new_empty(kept, G.size(0), problem.layout.padded_heads),
    )


@custom_op("cagat::fused_diffusion_backward", mutates_args=())
def fused_diffusion_gradients(
    graph: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
    chain: Tensor,
    hidden: Tensor,
    B: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients at Z and at G; itself not differentiable."""
    from cagat.diffusion.fused_heads import backward_by_heads

    problem = fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks)
    return backward_by_heads(problem, (chain, hidden, B), Z.detach(), G.detach(), grad.detach())


@fused_diffusion_gradients.register_fake
def _(
    graph: list[Tensor],
    Z: Tensor,
    G: Tensor,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
    chain: Tensor,
    hidden: Tensor,
    B: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor]:
    contiguous = torch.contiguous_format
    return torch.empty_like(Z, memory_format=contiguous), torch.empty_like(G, memory_format=contiguous)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    graph, Z, G, *numbers = inputs
    ctx.save_for_backward(*graph, Z, G, *output[1:])
    ctx.numbers = numbers
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    *graph, Z, G, chain, hidden, B = ctx.saved_tensors
    nothing = (None,) * 6
    if grad is None:
        return ([None] * len(graph), None, None, *nothing)
    if torch.is_grad_enabled():  # Somebody wants to differentiate the gradient: backward(create_graph=True).
        gradients = _differentiable_gradients(graph, Z, G, ctx.numbers, grad)
    else:
        gradients = fused_diffusion_gradients(graph, Z, G, *ctx.numbers, chain, hidden, B, grad)
    return ([None] * len(graph), *gradients, *nothing)


def _differentiable_gradients(
    graph: list[Tensor], Z: Tensor, G: Tensor, numbers: list[Any], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The same gradients, through the rounds made of single products."""
    order, weights = graph_of(graph)
    alpha, lam, xi, rounds, steps, walks = numbers
    ordered = CSRGraph.from_transition(order.pattern, weights)
    diffusion = Diffusion(K=rounds, T=steps, normalization="walk" if walks else "row")

    def features(Z: Tensor, G: Tensor) -> Tensor:
        H = diffuse(Z[order.nodes], G[order.entries], ordered, Coefficients(alpha, lam, xi), diffusion).H
        return H[order.nodes_back]

    return differentiable_gradients(features, (Z, G), grad)


def differentiable_gradients(
    function: Callable[..., Tensor], inputs: tuple[Tensor, ...], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of a function at those inputs that want one, for somebody who will differentiate them again."""
    # Views, so that an input that another one was made of, as G is of Z, is not credited with what goes through that.
    views = [tensor.view_as(tensor) for tensor in inputs]
    wanted = [view for view in views if view.requires_grad]
    found = iter(torch.autograd.grad(function(*views), wanted, grad, create_graph=True, materialize_grads=True))
    return tuple(next(found) if view.requires_grad else None for view in views)


fused_diffusion.register_autograd(_backward, setup_context=_setup)
