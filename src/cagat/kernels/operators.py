"""The sparse products as torch operators: schema, fake implementation, gradient, and the choice of implementation.

They take plain tensors, since a schema knows no dataclasses, and both directions of the pattern, since the gradient
needs the other one. Call them through :mod:`cagat.kernels.products`, which checks the arguments.
"""

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from cagat.kernels import torch_products


def _implementation(x: Tensor) -> Any:
    """Decide, for all operators, which implementation runs: numba where it can, plain torch everywhere else."""
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        # Imported here, so that importing cagat does not wait for the compiler.
        from cagat.kernels import numba_products

        return numba_products
    return torch_products


@custom_op("cagat::spmm", mutates_args=())
def spmm(
    rowptr: Tensor, col: Tensor, weight: Tensor, rowptr_t: Tensor, col_t: Tensor, weight_t: Tensor, x: Tensor
) -> Tensor:
    """Product with constant weights."""
    y: Tensor = _implementation(x).spmm(rowptr, col, weight, x)
    return y


spmm.register_fake(lambda rowptr, col, weight, rowptr_t, col_t, weight_t, x: x.new_empty(rowptr.size(0) - 1, x.size(1)))


def _spmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    rowptr, col, weight, rowptr_t, col_t, weight_t = ctx.saved_tensors
    return (None,) * 6 + (spmm(rowptr_t, col_t, weight_t, rowptr, col, weight, grad),)


spmm.register_autograd(_spmm_backward, setup_context=_spmm_setup)


@custom_op("cagat::spmm_heads", mutates_args=())
def spmm_heads(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    perm_t: Tensor,
    values: Tensor,
    x: Tensor,
    transpose: bool,
) -> Tensor:
    """Product with values of each head."""
    y: Tensor = _implementation(x).spmm_heads(rowptr, col, rowptr_t, col_t, perm_t, values, x, transpose)
    return y


spmm_heads.register_fake(
    lambda rowptr, col, rowptr_t, col_t, perm_t, values, x, transpose: x.new_empty(
        (rowptr_t if transpose else rowptr).size(0) - 1, x.size(1), x.size(2)
    )
)


def _spmm_heads_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:7])
    ctx.transpose = inputs[7]


def _spmm_heads_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, values, x = ctx.saved_tensors
    grad_values = grad_x = None
    if ctx.needs_input_grad[5]:
        grad_values = sddmm_heads(*pattern, x, grad) if ctx.transpose else sddmm_heads(*pattern, grad, x)
    if ctx.needs_input_grad[6]:
        grad_x = spmm_heads(*pattern, values, grad, not ctx.transpose)
    return (None,) * 5 + (grad_values, grad_x, None)


spmm_heads.register_autograd(_spmm_heads_backward, setup_context=_spmm_heads_setup)


@custom_op("cagat::sddmm_heads", mutates_args=())
def sddmm_heads(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, perm_t: Tensor, a: Tensor, b: Tensor
) -> Tensor:
    """Inner products at the entries."""
    y: Tensor = _implementation(a).sddmm_heads(rowptr, col, a, b)
    return y


sddmm_heads.register_fake(lambda rowptr, col, rowptr_t, col_t, perm_t, a, b: a.new_empty(col.size(0), a.size(1)))


def _sddmm_heads_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _sddmm_heads_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, a, b = ctx.saved_tensors
    grad_a = spmm_heads(*pattern, grad, b, False) if ctx.needs_input_grad[5] else None
    grad_b = spmm_heads(*pattern, grad, a, True) if ctx.needs_input_grad[6] else None
    return (None,) * 5 + (grad_a, grad_b)


sddmm_heads.register_autograd(_sddmm_heads_backward, setup_context=_sddmm_heads_setup)


@custom_op("cagat::edge_softmax", mutates_args=())
def edge_softmax(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    perm_t: Tensor,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
) -> Tensor:
    """GAT's attention."""
    y: Tensor = _implementation(dst).edge_softmax(rowptr, col, dst, src, edge, negative_slope)
    return y


edge_softmax.register_fake(
    lambda rowptr, col, rowptr_t, col_t, perm_t, dst, src, edge, negative_slope: dst.new_empty(col.size(0), dst.size(1))
)


@custom_op("cagat::edge_softmax_backward", mutates_args=())
def edge_softmax_gradients(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    perm_t: Tensor,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of GAT's attention in one pass; itself not differentiable."""
    gradients: tuple[Tensor, Tensor, Tensor] = _implementation(dst).edge_softmax_backward(
        rowptr, col, rowptr_t, perm_t, dst, src, edge, negative_slope, softmax, grad
    )
    return gradients


edge_softmax_gradients.register_fake(
    lambda rowptr, col, rowptr_t, perm_t, dst, src, edge, negative_slope, softmax, grad: (
        torch.empty_like(dst, memory_format=torch.contiguous_format),
        torch.empty_like(src, memory_format=torch.contiguous_format),
        torch.empty_like(softmax),
    )
)


def _differentiable_edge_softmax_gradients(
    pattern: list[Tensor], dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float, g: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same gradients from products that can be differentiated again; ones turn these into sums and gathers."""
    rows, columns = torch.ones_like(dst)[:, :, None], torch.ones_like(src)[:, :, None]
    logits = sddmm_heads(*pattern, dst[:, :, None], columns) + sddmm_heads(*pattern, rows, src[:, :, None])
    if edge is not None:
        logits = logits + edge
    slope = torch.ones_like(logits).masked_fill(logits <= 0, negative_slope)
    mean = spmm_heads(*pattern, g * grad, columns, False)
    grad_logits = slope * g * (grad - sddmm_heads(*pattern, mean, columns))
    grad_dst = spmm_heads(*pattern, grad_logits, columns, False)
    grad_src = spmm_heads(*pattern, grad_logits, rows, True)
    return grad_dst.squeeze(-1), grad_src.squeeze(-1), grad_logits


def _edge_softmax_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *pattern, dst, src, edge, negative_slope = inputs
    ctx.save_for_backward(*pattern, dst, src, edge, output)
    ctx.negative_slope = negative_slope


def _edge_softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, dst, src, edge, softmax = ctx.saved_tensors
    logits = (dst, src, edge, ctx.negative_slope, softmax, grad)
    if torch.is_grad_enabled():  # Somebody wants to differentiate the gradient: backward(create_graph=True).
        gradients = _differentiable_edge_softmax_gradients(pattern, *logits)
    else:
        rowptr, col, rowptr_t, _, perm_t = pattern
        gradients = edge_softmax_gradients(rowptr, col, rowptr_t, perm_t, *logits)
    grad_dst, grad_src, grad_edge = gradients
    return (None,) * 5 + (grad_dst, grad_src, None if edge is None else grad_edge, None)


edge_softmax.register_autograd(_edge_softmax_backward, setup_context=_edge_softmax_setup)


@custom_op("cagat::edge_diffusion", mutates_args=())
def edge_diffusion(
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    values: Tensor,
    transpose: bool,
) -> Tensor:
    """One diffusion step at the entries."""
    y: Tensor = _implementation(values).edge_diffusion(
        rowptr, col, weight, rowptr_t, col_t, weight_t, values, transpose
    )
    return y


edge_diffusion.register_fake(
    lambda rowptr, col, weight, rowptr_t, col_t, weight_t, values, transpose: torch.empty_like(
        values, memory_format=torch.contiguous_format
    )
)


def _edge_diffusion_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6])
    ctx.transpose = inputs[7]


def _edge_diffusion_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return (None,) * 6 + (edge_diffusion(*ctx.saved_tensors, grad, not ctx.transpose), None)


edge_diffusion.register_autograd(_edge_diffusion_backward, setup_context=_edge_diffusion_setup)
