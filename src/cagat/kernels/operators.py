"""The sparse products, differentiable, on any device: numba on the CPU, plain torch everywhere else.

A matrix is a :class:`~cagat.kernels.csr_pattern.CSRPattern` and its values, one number per head at each entry. The
gradients of :func:`spmm_heads` and :func:`sddmm_heads` are each other, and every product can be differentiated any
number of times. Each product here is its checked function, the torch operator, its fake implementation and its
gradient; the two implementations are in :mod:`~cagat.kernels.numba_products` and :mod:`~cagat.kernels.torch_products`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op
from torch.nn import functional as F

from cagat.kernels import torch_products
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.validation import check_operands


def has_kernel(x: Tensor) -> bool:
    """Whether there are compiled loops for such a tensor."""
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _implementation(x: Tensor) -> Any:
    """Decide, for all operators, which implementation runs: numba where it can, plain torch everywhere else."""
    if has_kernel(x):
        # Imported here, so that importing cagat does not wait for the compiler.
        from cagat.kernels import numba_products

        return numba_products
    return torch_products


class Operator:
    """A torch operator with a gradient, whose first argument is a list of tensors that get none: a graph.

    Calls that nobody traces or transforms skip torch's dispatcher, which takes longer than a product on a small graph.

    Args:
        forward: The operator, typed as torch's schemas ask for.
        fake: Gives the shapes of its results.
        setup: Keeps what the gradient needs, called with the context, the inputs and the output.
        backward: The gradient, called with the context and the gradient at the output; it leaves out the first input.
        schema: The types of inputs and outputs, as torch writes them; by default those of ``forward``'s annotations.
    """

    def __init__(
        self,
        forward: Callable[..., Any],
        fake: Callable[..., Any],
        setup: Callable[[Any, tuple[Any, ...], Any], None],
        backward: Callable[..., tuple[Any, ...]],
        schema: str | None = None,
    ) -> None:
        def setup_traced(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.graph_size = len(inputs[0])
            setup(ctx, inputs, output)

        def backward_traced(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            return ([None] * ctx.graph_size, *backward(ctx, *grads))

        self.traced = custom_op(f"cagat::{forward.__name__.strip('_')}", forward, mutates_args=(), schema=schema)
        self.traced.register_fake(fake)
        self.traced.register_autograd(backward_traced, setup_context=setup_traced)

        class Untraced(torch.autograd.Function):
            # Not a setup_context beside forward: torch would look up the signature at each call.
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = forward(*inputs)
                setup(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
                return (None, *backward(ctx, *grads))

        self._untraced: Callable[..., Any] = Untraced.apply

    def __call__(self, graph: list[Tensor], x: Tensor, *arguments: Any) -> Any:
        """Run the operator."""
        return (self.traced if is_traced(x) else self._untraced)(graph, x, *arguments)


def is_traced(x: Tensor) -> bool:
    """Whether somebody records or transforms what is done with a tensor, and needs an operator that torch knows."""
    if torch.compiler.is_compiling() or type(x) not in (Tensor, torch.nn.Parameter):
        return True
    return bool(torch._C._are_functorch_transforms_active())  # Then no Function can be called, whatever goes into it.


def spmm(pattern: CSRPattern, weights: tuple[Tensor, Tensor], x: Tensor, *, transpose: bool = False) -> Tensor:
    r"""The product :math:`y_i = \sum_j w_{ij} x_j` with weights that all columns of x share, x of shape ``(n, ...)``.

    The weights are given in the order of the entries and in that of the transpose's entries, and get no gradient.
    """
    rows = pattern.num_rows if transpose else pattern.num_cols
    check_operands("spmm", pattern, weights=(weights[0], None, pattern.num_entries), x=(x, None, rows))
    y: Tensor = spmm_operator([*pattern.tensors(), *weights], x.flatten(1) if x.dim() > 1 else x[:, None], transpose)
    return y.view(y.size(0), *x.shape[1:])


def _spmm(graph: list[Tensor], x: Tensor, transpose: bool) -> Tensor:
    y: Tensor = _implementation(x).spmm(CSRPattern(*graph[:5]), graph[5:], x, transpose)
    return y


def _spmm_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    graph, _, ctx.transpose = inputs
    ctx.save_for_backward(*graph)


def _spmm_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return spmm_operator(list(ctx.saved_tensors), grad, not ctx.transpose), None


spmm_operator = Operator(
    _spmm,
    lambda graph, x, transpose: x.new_empty(graph[2 if transpose else 0].size(0) - 1, x.size(1)),
    _spmm_setup,
    _spmm_backward,
)


def spmm_heads(pattern: CSRPattern, values: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
    r"""The product :math:`y_{ih} = \sum_j v_{ijh} x_{jh}` of values ``(E, H)`` and features ``(n, H, C)``.

    The values are in the matrix's own order, also if the product is with its transpose.
    """
    rows = pattern.num_rows if transpose else pattern.num_cols
    check_operands("spmm_heads", pattern, values=(values, 2, pattern.num_entries), x=(x, 3, rows))
    y: Tensor = spmm_heads_operator(pattern.tensors(), values, x, transpose)
    return y


def _spmm_heads(pattern: list[Tensor], values: Tensor, x: Tensor, transpose: bool) -> Tensor:
    y: Tensor = _implementation(x).spmm_heads(CSRPattern(*pattern), values, x, transpose)
    return y


def _spmm_heads_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, values, x, ctx.transpose = inputs
    ctx.save_for_backward(*pattern, values, x)


def _spmm_heads_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, values, x = ctx.saved_tensors
    grad_values = grad_x = None
    if ctx.needs_input_grad[1]:
        grad_values = sddmm_heads_operator(pattern, *((x, grad) if ctx.transpose else (grad, x)))
    if ctx.needs_input_grad[2]:
        grad_x = spmm_heads_operator(pattern, values, grad, not ctx.transpose)
    return grad_values, grad_x, None


spmm_heads_operator = Operator(
    _spmm_heads,
    lambda pattern, values, x, transpose: x.new_empty(pattern[2 if transpose else 0].size(0) - 1, *x.shape[1:]),
    _spmm_heads_setup,
    _spmm_heads_backward,
)


def sddmm_heads(pattern: CSRPattern, a: Tensor, b: Tensor) -> Tensor:
    r"""The inner products :math:`\langle a_{ih}, b_{jh} \rangle` at the entries, of features ``(n, H, C)``."""
    check_operands("sddmm_heads", pattern, a=(a, 3, pattern.num_rows), b=(b, 3, pattern.num_cols))
    y: Tensor = sddmm_heads_operator(pattern.tensors(), a, b)
    return y


def _sddmm_heads(pattern: list[Tensor], a: Tensor, b: Tensor) -> Tensor:
    y: Tensor = _implementation(a).sddmm_heads(CSRPattern(*pattern), a, b)
    return y


def _sddmm_heads_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, a, b = inputs
    ctx.save_for_backward(*pattern, a, b)


def _sddmm_heads_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, a, b = ctx.saved_tensors
    grad_a = spmm_heads_operator(pattern, grad, b, False) if ctx.needs_input_grad[1] else None
    grad_b = spmm_heads_operator(pattern, grad, a, True) if ctx.needs_input_grad[2] else None
    return grad_a, grad_b


sddmm_heads_operator = Operator(
    _sddmm_heads,
    lambda pattern, a, b: a.new_empty(pattern[1].size(0), a.size(1)),
    _sddmm_heads_setup,
    _sddmm_heads_backward,
)


def edge_softmax(
    pattern: CSRPattern, dst: Tensor, src: Tensor, edge: Tensor | None = None, negative_slope: float = 0.2
) -> Tensor:
    r"""GAT's attention :math:`G_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(d_i + s_j + e_{ij})`, Eq. (1)-(2).

    Each logit is made of a share of the row's node and one of the column's, of shape ``(n, H)``, and maybe one of the
    entry itself, of shape ``(E, H)``.
    """
    operands = {"dst": (dst, 2, pattern.num_rows), "src": (src, 2, pattern.num_cols)}
    if edge is not None:
        operands["edge"] = (edge, 2, pattern.num_entries)
    check_operands("edge_softmax", pattern, **operands)
    y: Tensor = edge_softmax_operator(pattern.tensors(), dst, src, edge, negative_slope)
    return y


def _edge_softmax(
    pattern: list[Tensor], dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float
) -> Tensor:
    y: Tensor = _implementation(dst).edge_softmax(CSRPattern(*pattern), dst, src, edge, negative_slope)
    return y


def _edge_softmax_gradients(
    pattern: list[Tensor],
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients in one pass; itself not differentiable."""
    gradients: tuple[Tensor, Tensor, Tensor] = _implementation(dst).edge_softmax_backward(
        CSRPattern(*pattern), dst, src, edge, negative_slope, softmax, grad
    )
    return gradients


edge_softmax_gradients = custom_op("cagat::edge_softmax_backward", _edge_softmax_gradients, mutates_args=())
edge_softmax_gradients.register_fake(
    lambda pattern, dst, src, edge, negative_slope, softmax, grad: tuple(
        torch.empty_like(x, memory_format=torch.contiguous_format) for x in (dst, src, softmax)
    )
)


def _differentiable_edge_softmax_gradients(
    pattern: list[Tensor], dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float, G: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same gradients from products that can be differentiated again; ones turn these into sums and gathers."""
    rows, columns = torch.ones_like(dst)[:, :, None], torch.ones_like(src)[:, :, None]
    logits = sddmm_heads_operator(pattern, dst[:, :, None], columns)
    logits = logits + sddmm_heads_operator(pattern, rows, src[:, :, None])
    if edge is not None:
        logits = logits + edge
    slope = torch.ones_like(logits).masked_fill(logits <= 0, negative_slope)
    mean = spmm_heads_operator(pattern, G * grad, columns, False)
    grad_logits = slope * G * (grad - sddmm_heads_operator(pattern, mean, columns))
    grad_dst = spmm_heads_operator(pattern, grad_logits, columns, False)
    grad_src = spmm_heads_operator(pattern, grad_logits, rows, True)
    return grad_dst.squeeze(-1), grad_src.squeeze(-1), grad_logits


def _edge_softmax_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pattern, dst, src, edge, ctx.negative_slope = inputs
    ctx.save_for_backward(*pattern, dst, src, edge, output)


def _edge_softmax_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *pattern, dst, src, edge, softmax = ctx.saved_tensors
    gradients: Any = edge_softmax_gradients if is_traced(grad) else _edge_softmax_gradients
    if torch.is_grad_enabled():  # Somebody wants to differentiate the gradient: backward(create_graph=True).
        gradients = _differentiable_edge_softmax_gradients
    grad_dst, grad_src, grad_edge = gradients(pattern, dst, src, edge, ctx.negative_slope, softmax, grad)
    return grad_dst, grad_src, None if edge is None else grad_edge, None


edge_softmax_operator = Operator(
    _edge_softmax,
    lambda pattern, dst, src, edge, negative_slope: dst.new_empty(pattern[1].size(0), dst.size(1)),
    _edge_softmax_setup,
    _edge_softmax_backward,
)


def edge_diffusion(pattern: CSRPattern, weights: tuple[Tensor, Tensor], values: Tensor) -> Tensor:
    r"""One step of diffusion :math:`\bar{A} S \bar{A}^T`, Eq. (5), read at the entries of :math:`S` only, ``(E, H)``.

    The weights are those of :math:`\bar{A}`, as for :func:`spmm`.
    """
    entries = pattern.num_entries
    check_operands("edge_diffusion", pattern, weights=(weights[0], None, entries), values=(values, 2, entries))
    y: Tensor = edge_diffusion_operator([*pattern.tensors(), *weights], values, False)
    return y


def _edge_diffusion(graph: list[Tensor], values: Tensor, transpose: bool) -> Tensor:
    y: Tensor = _implementation(values).edge_diffusion(CSRPattern(*graph[:5]), graph[5:], values, transpose)
    return y


def _edge_diffusion_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return edge_diffusion_operator(list(ctx.saved_tensors), grad, not ctx.transpose), None


edge_diffusion_operator = Operator(
    _edge_diffusion,
    lambda graph, values, transpose: torch.empty_like(values, memory_format=torch.contiguous_format),
    _spmm_setup,
    _edge_diffusion_backward,
)


def dropout(x: Tensor, p: float, training: bool, global_rows: Tensor | None = None) -> Tensor:
    """As :func:`torch.nn.functional.dropout`: each element is 0 with probability p, else divided by 1 - p.

    torch draws one random number after the other: on PubMed the mask of G takes as long as several products. Here the
    mask of an element is a hash of its position and of a seed, which torch draws. It does not depend on threads, and
    the backward pass makes it again instead of keeping it. If ``x`` holds some rows of a larger matrix, of which
    ``global_rows`` (int64) are the numbers, they get the mask that they have there, given the same seed.
    """
    if not training or not 0 < p < 1 or (global_rows is None and not has_kernel(x)):
        return F.dropout(x, p, training)
    seed = torch.randint(0, 2**62, (1,))
    if has_kernel(x):
        return seeded_dropout(x, seed, p, global_rows)
    assert global_rows is not None
    return x * seeded_dropout(torch.ones(x.shape), seed, p, global_rows.cpu()).to(x.device, x.dtype)


def seeded_dropout(x: Tensor, seed: Tensor, p: float, global_rows: Tensor | None = None) -> Tensor:
    """Dropout with the mask of a given seed."""
    y: Tensor = dropout_operator([seed] if global_rows is None else [seed, global_rows], x, p)
    return y


def _dropout(mask: list[Tensor], x: Tensor, p: float) -> Tensor:
    from cagat.kernels import numba_products

    return numba_products.dropout(x, int(mask[0]), p, mask[1] if len(mask) > 1 else None)


def _dropout_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    mask, _, ctx.p = inputs
    ctx.save_for_backward(*mask)


def _dropout_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return dropout_operator(list(ctx.saved_tensors), grad, ctx.p), None


dropout_operator = Operator(
    _dropout,
    lambda mask, x, p: torch.empty_like(x, memory_format=torch.contiguous_format),
    _dropout_setup,
    _dropout_backward,
)
