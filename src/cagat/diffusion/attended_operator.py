"""GAT's attention and the fused rounds, as a torch operator and, for calls that nobody traces, without its price."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from cagat.diffusion.diffuse import diffuse
from cagat.diffusion.diffusion import Coefficients, Diffusion
from cagat.diffusion.fused_operator import differentiable_gradients, fused_problem, graph_of
from cagat.kernels import CSRGraph
from cagat.kernels.operators import edge_softmax, seeded_dropout


def _forward(
    graph: list[Tensor],
    Z: Tensor,
    att_dst: Tensor,
    att_src: Tensor,
    seed: Tensor,
    p: float,
    slope: float,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The features after all rounds, and what the gradient needs: see :class:`FusedResult`, :class:`MadeAttention`."""
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.diffusion.attended_rounds import AttentionWeights, attended_forward

    problem = fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks)
    weights = AttentionWeights(att_dst.detach(), att_src.detach(), slope, p, int(seed))
    result, attention = attended_forward(problem, Z.detach(), weights)
    return (*result, *attention)


attended_diffusion = custom_op("cagat::attended_diffusion", _forward, mutates_args=())


@attended_diffusion.register_fake
def _(
    graph: list[Tensor],
    Z: Tensor,
    att_dst: Tensor,
    att_src: Tensor,
    seed: Tensor,
    p: float,
    slope: float,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    problem = fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks)
    kept, heads, entries = problem.rounds if problem.has_affinity else 0, problem.layout.padded_heads, graph[1].size(0)
    row = (Z.size(0), problem.layout.width)
    return (
        torch.empty_like(Z, memory_format=torch.contiguous_format),
        Z.new_empty(problem.depth + 1, *row),
        Z.new_empty(kept, *row),
        Z.new_empty(kept, entries, heads),
        Z.new_empty(2, Z.size(0), heads),
        Z.new_empty(entries, heads),
        Z.new_empty(entries, heads) if p > 0 else Z.new_empty(0),
    )


def _gradients(
    graph: list[Tensor],
    Z: Tensor,
    att_dst: Tensor,
    att_src: Tensor,
    seed: Tensor,
    p: float,
    slope: float,
    alpha: float,
    lam: float,
    xi: float,
    rounds: int,
    steps: int,
    walks: bool,
    kept: list[Tensor],
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients at Z and at the weights of the attention; itself not differentiable."""
    from cagat.diffusion.attended_rounds import AttentionWeights, MadeAttention, attended_backward

    problem = fused_problem(graph, Z, alpha, lam, xi, rounds, steps, walks)
    weights = AttentionWeights(att_dst.detach(), att_src.detach(), slope, p, int(seed))
    chain, hidden, B, *attention = kept
    return attended_backward(problem, (chain, hidden, B), MadeAttention(*attention), weights, grad.detach())


attended_diffusion_gradients = custom_op("cagat::attended_diffusion_backward", _gradients, mutates_args=())


@attended_diffusion_gradients.register_fake
def _(graph: list[Tensor], Z: Tensor, att_dst: Tensor, att_src: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    gradients = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (Z, att_dst, att_src))
    return tuple(gradients)  # type: ignore[return-value]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    graph, Z, att_dst, att_src, seed, *numbers = inputs
    ctx.save_for_backward(*graph, Z, att_dst, att_src, seed, *output[1:])
    ctx.numbers = numbers
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    graph, (Z, att_dst, att_src, seed), kept = list(saved[:10]), saved[10:14], list(saved[14:])
    nothing = (None,) * 9
    if grad is None:
        return ([None] * len(graph), None, None, None, *nothing)
    if torch.is_grad_enabled():  # Somebody wants to differentiate the gradient: backward(create_graph=True).
        gradients = _differentiable_gradients(graph, Z, att_dst, att_src, seed, ctx.numbers, grad)
    else:
        operator: Callable[..., tuple[Tensor, ...]] = attended_diffusion_gradients if _is_traced(grad) else _gradients
        gradients = operator(graph, Z, att_dst, att_src, seed, *ctx.numbers, kept, grad)
    return ([None] * len(graph), *gradients, *nothing)


def _differentiable_gradients(
    graph: list[Tensor], Z: Tensor, att_dst: Tensor, att_src: Tensor, seed: Tensor, numbers: list[Any], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The same gradients, through single products."""
    order, transition = graph_of(graph)
    p, slope, alpha, lam, xi, rounds, steps, walks = numbers
    ordered = CSRGraph.from_transition(order.pattern, transition)
    diffusion = Diffusion(K=rounds, T=steps, normalization="walk" if walks else "row")

    def features(Z: Tensor, att_dst: Tensor, att_src: Tensor) -> Tensor:
        V = Z[order.nodes]
        dst, src = ((V * weights).sum(dim=-1) for weights in (att_dst, att_src))
        G = edge_softmax(order.pattern, dst, src, None, slope)
        if p > 0:
            G = seeded_dropout(G, seed, p, order.entries)
        return diffuse(V, G, ordered, Coefficients(alpha, lam, xi), diffusion).H[order.nodes_back]

    return differentiable_gradients(features, (Z, att_dst, att_src), grad)


attended_diffusion.register_autograd(_backward, setup_context=_setup)


class _Untraced(torch.autograd.Function):
    """The operator without torch's dispatcher, which takes as long as the products of plain GAT on Cora."""

    # Not a setup_context beside forward: torch would look up the signature at each call, a tenth of a millisecond.
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        output = _forward(*arguments)
        _setup(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *_backward(ctx, *grads)[1:])


def attended(*arguments: Any) -> Tensor:
    """The first result of :func:`attended_diffusion`, which the arguments are for, the fastest way there is."""
    operator = attended_diffusion if _is_traced(arguments[1]) else _Untraced.apply
    H: Tensor = operator(*arguments)[0]  # type: ignore[no-untyped-call]
    return H


def _is_traced(tensor: Tensor) -> bool:
    """Whether somebody writes down what is done or transforms it, for whom it must be an operator that torch knows."""
    if torch.compiler.is_compiling() or type(tensor) is not Tensor:
        return True
    return bool(torch._C._are_functorch_transforms_active())  # Then no Function can be called, whatever goes into it.
