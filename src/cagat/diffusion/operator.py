"""The features that the rounds end in, the fastest way there is: one torch operator where it can be.

The operator makes GAT's attention, or is given it, and runs all rounds in compiled passes with a gradient written by
hand. It serves every switch but ``support="edges"``, with coefficients that are numbers or learnt, on the CPU. What it
does not serve is made of single products, and so are second gradients.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.library import custom_op

from cagat.diffusion.diffuse import Coefficients, Diffusion, diffuse
from cagat.kernels import CSRGraph, CSRPattern, edge_softmax
from cagat.kernels.csr_pattern import LocalOrder
from cagat.kernels.operators import Operator, is_traced, seeded_dropout
from cagat.kernels.row_layout import row_layout
from cagat.memory import total_memory

if TYPE_CHECKING:
    from cagat.diffusion.plan import Plan

# Above so many bytes that a backward pass works with, heads are worked on in groups: about so many features of all
# nodes and values of all entries. Half of the heads at a time take a tenth longer, a quarter half as long again.
AT_ONCE = total_memory() // 8
_LEVELS, _MATRICES = 11, 8

# For evaluation by single products: above so many bytes of features, heads are worked on in groups.
MOST_BYTES = 2**30


class GATAttention(NamedTuple):
    """How GAT's attention is made from the features.

    Attributes:
        dst: The weights of the targets' features, ``(1, heads, channels)``.
        src: The weights of the sources' features.
        negative_slope: LeakyReLU's slope.
        dropout: The probability with which an entry is dropped.
    """

    dst: Tensor
    src: Tensor
    negative_slope: float
    dropout: float


def diffuse_features(
    Z: Tensor, attention: Tensor | GATAttention, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion
) -> Tensor:
    """As :func:`~cagat.diffusion.diffuse`, where only the features are wanted and not the attention.

    Args:
        Z: The features.
        attention: GAT's attention G at the entries, or how to make it, if :func:`can_attend`.
        graph: The graph.
        coefficients: The weights alpha, lam and xi.
        diffusion: The switches.
    """
    dtype = attention.dst.dtype if isinstance(attention, GATAttention) else attention.dtype
    if not is_fused(Z, graph, diffusion) or dtype != Z.dtype:
        assert isinstance(attention, Tensor)
        return _by_heads(Z, attention, graph, coefficients, diffusion)
    of_heads = [_of_heads(coefficient, Z) for coefficient in coefficients]
    if of_heads[1] is None:
        return Z.clone()
    if isinstance(attention, GATAttention):
        seed = torch.randint(0, 2**62, (1,)) if attention.dropout > 0 else None
        tensors = [Z, None, attention.dst, attention.src, seed, *of_heads]
        numbers: list[Any] = [attention.dropout, attention.negative_slope]
    else:
        tensors, numbers = [Z, attention, None, None, None, *of_heads], [0.0, 0.0]
    switches = diffusion.K, diffusion.T, diffusion.affinity == "full", diffusion.feedback
    is_walk, heads = diffusion.normalization == "walk", int(Z.size(1))
    if not graph.is_whole:
        part = graph.local_order(), graph.local_transition(diffusion.normalization, Z.dtype)
        in_part: Tensor = _InParts.apply(part, *tensors, *numbers, 0, heads, *switches, is_walk)  # type: ignore[no-untyped-call]
        return in_part
    prepared = _as_tensors(graph, diffusion.normalization, Z.dtype)
    size = _heads_at_once(Z, graph) if isinstance(attention, GATAttention) else heads
    groups = [
        fused_diffusion(prepared, *some, *numbers, first, heads, *switches, is_walk)[0]
        for first, some in zip(range(0, heads, size), _groups(tensors, heads, size), strict=True)
    ]
    return groups[0] if len(groups) == 1 else torch.cat(groups, dim=1)


def _heads_at_once(Z: Tensor, graph: CSRGraph) -> int:
    """How many heads are worked on together: they meet nowhere, and a pass's memory is free again after each group."""
    group = int(Z.size(1))
    head = (_LEVELS * graph.num_nodes * Z.size(2) + _MATRICES * graph.num_entries) * Z.itemsize
    while group % 2 == 0 and group * head > AT_ONCE:
        group //= 2
    return group


def _groups(tensors: list[Tensor | None], heads: int, size: int) -> Iterator[tuple[Any, ...]]:
    """The tensors of some heads after the others."""
    if size == heads:
        return iter([tuple(tensors)])
    Z, G, dst, src, seed, *of_heads = tensors
    groups = heads // size
    split: list[Iterable[Tensor | None]] = [
        *([None] * groups if x is None else x.chunk(groups, dim=1) for x in (Z, G, dst, src)),
        [seed] * groups,
        *([None] * groups if x is None else x.chunk(groups) for x in of_heads),
    ]
    return zip(*split, strict=True)


def can_attend(Z: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion, dropout: float) -> bool:
    """Whether :func:`diffuse_features` can make GAT's attention itself."""
    if dropout == 1 or not is_fused(Z, graph, diffusion):
        return False
    alpha, lam, xi = (_of_heads(coefficient, Z) for coefficient in coefficients)
    if lam is None:
        return False
    if not graph.is_whole:  # Processes must all do the same, whatever they hold.
        return True
    switches = (diffusion.K, diffusion.T, diffusion.affinity == "full", diffusion.feedback, False)
    return _plan(_as_tensors(graph, diffusion.normalization, Z.dtype), Z, alpha, lam, xi, *switches).keeps_results


def is_fused(Z: Tensor, graph: CSRGraph, diffusion: Diffusion) -> bool:
    """Whether the operator serves such features, such a graph and such switches."""
    if diffusion.support == "edges" or graph.pattern.col.dtype != torch.int32:
        return False
    if not graph.runs_passes or (not graph.is_whole and diffusion.affinity == "full"):
        return False
    if Z.device.type != "cpu" or Z.dtype not in (torch.float32, torch.float64):
        return False
    return row_layout(int(Z.size(1)), int(Z.size(2)), Z.dtype).is_possible


def _of_heads(coefficient: float | Tensor, Z: Tensor) -> Tensor | None:
    """A coefficient as the operator takes it: one number per head; nothing if it is zero and will stay so."""
    if isinstance(coefficient, Tensor):
        return coefficient.to(Z.dtype).expand(Z.size(1)).contiguous()
    return None if coefficient == 0 else Z.new_full((Z.size(1),), coefficient)


def _by_heads(Z: Tensor, G: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion) -> Tensor:
    """The rounds by single products; for evaluation a few heads at a time, where all would take too much memory."""
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


def _as_tensors(graph: CSRGraph, normalization: str, dtype: torch.dtype) -> list[Tensor]:
    """What the operator takes of a graph, as its schema asks for it."""
    order = graph.local_order()
    pattern = order.pattern
    return [
        *(pattern.rowptr, pattern.col, pattern.rowptr_t, pattern.col_t, pattern.perm_t),
        *(order.nodes, order.nodes_back, order.entries),
        *graph.local_transition(normalization, dtype),
    ]


def _graph_of(tensors: list[Tensor]) -> tuple[LocalOrder, tuple[Tensor, Tensor]]:
    """What :func:`_as_tensors` took apart."""
    nodes, nodes_back, entries, *weights = tensors[5:]
    return LocalOrder(CSRPattern(*tensors[:5]), nodes, nodes_back, entries), (weights[0], weights[1])


Part = tuple[LocalOrder, tuple[Tensor, Tensor]]
"""A graph's local order and the values of Abar."""


def _plan(
    graph: list[Tensor] | Part, Z: Tensor, alpha: Tensor | None, lam: Tensor, xi: Tensor | None, *switches: Any
) -> "Plan":
    # Imported here, so that importing cagat does not wait for the compiler.
    from cagat.diffusion.plan import Plan

    coefficients = (None if c is None else c.detach() for c in (alpha, lam, xi))
    layout = row_layout(int(Z.size(1)), int(Z.size(2)), Z.dtype)
    part = _graph_of(graph) if isinstance(graph, list) else graph
    return Plan.reduced(*part, layout, tuple(coefficients), switches)  # type: ignore[arg-type]


def _fused_diffusion(
    graph: list[Tensor], Z: Tensor, G: Tensor | None, dst: Tensor | None, src: Tensor | None, seed: Tensor | None,
    alpha: Tensor | None, lam: Tensor, xi: Tensor | None, p: float, slope: float, first: int, of_all: int, K: int,
    T: int, full: bool, feedback: bool, walks: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The features, and what the gradient needs: the plan's memory, G, G before dropout, and the logits."""
    return _forward(
        _plan(graph, Z, alpha, lam, xi, K, T, full, feedback, walks),
        *(Z, G, dst, src, seed, p, slope, first, of_all),
    )


def _forward(
    plan: "Plan", Z: Tensor, G: Tensor | None, dst: Tensor | None, src: Tensor | None, seed: Tensor | None, p: float,
    slope: float, first: int, of_all: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    from cagat.diffusion.plan import AttentionWeights

    Z = Z.detach()
    none = Z.new_empty(0)
    if G is None:
        assert dst is not None
        assert src is not None
        weights = AttentionWeights(
            dst.detach(), src.detach(), slope, p, 0 if seed is None else int(seed), first, of_all
        )
        passes, memory = plan.passes(), plan.memory()
        local, softmax, logits = weights.forward(plan, passes, Z, plan.rows_of_Z(memory))
        H = plan.forward(passes, None, None, local, memory)
        return H, memory, local, softmax, logits
    G = G.detach()
    if plan.keeps_results:
        memory, local = plan.memory(), plan.matrix()
        return plan.forward(plan.passes(), Z, G, local, memory), memory, local, none, none.clone()
    H = torch.empty_like(Z, memory_format=torch.contiguous_format)
    for heads, part in plan.groups():
        H[:, heads] = part.forward(part.passes(), Z[:, heads], G[:, heads], part.matrix(), part.memory())
    return H, none, none.clone(), none.clone(), none.clone()


def _fake(graph: list[Tensor], Z: Tensor, G: Tensor | None, *others: Any) -> tuple[Tensor, ...]:
    alpha, lam, xi, p, _, _, _, *switches = others[3:]
    plan = _plan(graph, Z, alpha, lam, xi, *switches)
    H = torch.empty_like(Z, memory_format=torch.contiguous_format)
    if G is not None and not plan.keeps_results:
        return H, *(Z.new_empty(0) for _ in range(4))
    entries, heads = graph[1].size(0), plan.layout.padded_heads
    return (
        H, Z.new_empty(plan.kept_elements), Z.new_empty(entries, heads),
        Z.new_empty(entries, heads) if G is None and p > 0 else Z.new_empty(0),
        Z.new_empty(2, Z.size(0), heads) if G is None else Z.new_empty(0),
    )  # fmt: skip


def _gradients(
    graph: list[Tensor], Z: Tensor, G: Tensor | None, dst: Tensor | None, src: Tensor | None, seed: Tensor | None,
    alpha: Tensor | None, lam: Tensor, xi: Tensor | None, p: float, slope: float, first: int, of_all: int, K: int,
    T: int, full: bool, feedback: bool, walks: bool, learns: bool, kept: list[Tensor], grad: Tensor,
) -> list[Tensor]:  # fmt: skip
    """The gradients at Z, at G or at both weights, and at the coefficients if they are learnt; not differentiable."""
    plan = _plan(graph, Z, alpha, lam, xi, K, T, full, feedback, walks)
    return _backward_of(plan, Z, G, dst, src, seed, lam, p, slope, first, of_all, learns, kept, grad)


def _backward_of(
    plan: "Plan", Z: Tensor, G: Tensor | None, dst: Tensor | None, src: Tensor | None, seed: Tensor | None, lam: Tensor,
    p: float, slope: float, first: int, of_all: int, learns: bool, kept: list[Tensor], grad: Tensor,
) -> list[Tensor]:  # fmt: skip
    from cagat.diffusion.plan import AttentionWeights

    grad = grad.detach()
    memory, local, *logits = kept
    if G is None:
        assert dst is not None
        assert src is not None
        weights = AttentionWeights(
            dst.detach(), src.detach(), slope, p, 0 if seed is None else int(seed), first, of_all
        )
        passes = plan.passes()
        softmax, logit = logits
        dV, dG, coefficients = plan.backward(passes, memory, local, grad, learns=learns, has_given=False)
        made = weights.backward(plan, passes, (local, softmax, logit), plan.rows_of_Z(memory), dV, dG)
        return [*made, *(coefficients or ())]
    if plan.keeps_results:
        dZ, dG, coefficients = plan.backward(plan.passes(), memory, local, grad, learns=learns, has_given=True)
        return [dZ, dG, *(coefficients or ())]
    dZ, dG = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (Z, G))
    at_heads = [torch.empty_like(lam) for _ in range(3 if learns else 0)]
    for heads, part in plan.groups():
        passes, memory, local = part.passes(), part.memory(), part.matrix()
        part.forward(passes, Z[:, heads].detach(), G[:, heads].detach(), local, memory)
        found = part.backward(passes, memory, local, grad[:, heads], learns=learns, has_given=True)
        dZ[:, heads], dG[:, heads], some = found
        for whole, gradient in zip(at_heads, some or (), strict=True):
            whole[heads] = gradient
    return [dZ, dG, *at_heads]


fused_gradients = custom_op("cagat::fused_diffusion_backward", _gradients, mutates_args=())


@fused_gradients.register_fake
def _(graph: list[Tensor], Z: Tensor, G: Tensor | None, dst: Tensor, src: Tensor, *others: Any) -> list[Tensor]:
    lam, learns = others[2], others[-3]
    inputs = [Z, dst, src] if G is None else [Z, G]
    inputs += [lam] * (3 if learns else 0)
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs]


# The places of Z, G, dst, src, seed, alpha, lam and xi among the arguments.
_TENSORS = 8


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    graph, tensors, ctx.numbers = inputs[0], inputs[1 : 1 + _TENSORS], inputs[1 + _TENSORS :]
    ctx.save_for_backward(*graph, *tensors, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    saved = ctx.saved_tensors
    graph, kept = list(saved[: -_TENSORS - 4]), list(saved[-4:])
    tensors = saved[-_TENSORS - 4 : -4]
    gradients: list[Tensor | None] = [None] * _TENSORS
    if grad is not None and torch.is_grad_enabled():  # Somebody wants to differentiate it: backward(create_graph=True).
        gradients = _differentiable_gradients(graph, tensors, ctx.numbers, grad)
    elif grad is not None:
        learns = any(ctx.needs_input_grad[6:9])
        operator: Any = fused_gradients if is_traced(grad) else _gradients
        gradients = _in_places(tensors, operator(graph, *tensors, *ctx.numbers, learns, kept, grad), learns)
    return (*gradients, *(None,) * len(ctx.numbers))


def _in_places(tensors: tuple[Tensor | None, ...], found: list[Tensor], learns: bool) -> list[Tensor | None]:
    """What :func:`_gradients` has found, at the places of the tensors."""
    gradients: list[Tensor | None] = [None] * _TENSORS
    gradients[0] = found[0]
    if tensors[1] is not None:
        gradients[1] = found[1]
    else:
        gradients[2:4] = found[1:3]
    if learns:
        for place, gradient in zip((5, 6, 7), found[-3:], strict=True):
            gradients[place] = gradient if tensors[place] is not None else None
    return gradients


class _InParts(torch.autograd.Function):
    """The fused diffusion on the part of a graph that a process holds; not differentiable twice, nor traced."""

    @staticmethod
    def forward(ctx: Any, part: Part, *inputs: Any) -> Tensor:
        (Z, G, dst, src, seed, *coefficients), (p, slope, first, of_all, *switches) = (
            inputs[:_TENSORS],
            inputs[_TENSORS:],
        )
        plan = _plan(part, Z, *coefficients, *switches)
        H, *kept = _forward(plan, Z, G, dst, src, seed, p, slope, first, of_all)
        ctx.part, ctx.numbers = part, inputs[_TENSORS:]
        ctx.save_for_backward(*inputs[:_TENSORS], *kept)
        return H

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        tensors, kept = ctx.saved_tensors[:_TENSORS], list(ctx.saved_tensors[_TENSORS:])
        (Z, G, dst, src, seed, alpha, lam, xi), (p, slope, first, of_all, *switches) = tensors, ctx.numbers
        learns = any(ctx.needs_input_grad[6:9])
        plan = _plan(ctx.part, Z, alpha, lam, xi, *switches)
        found = _backward_of(plan, Z, G, dst, src, seed, lam, p, slope, first, of_all, learns, kept, grad)
        return (None, *_in_places(tensors, found, learns), *(None,) * len(ctx.numbers))


def _differentiable_gradients(
    graph: list[Tensor], tensors: tuple[Tensor | None, ...], numbers: tuple[Any, ...], grad: Tensor
) -> list[Tensor | None]:
    """The same gradients through single products, for somebody who will differentiate them again."""
    (order, transition), (p, slope, first, of_all, K, T, full, feedback, walks) = _graph_of(graph), numbers
    ordered = CSRGraph.from_transition(order.pattern, transition)
    diffusion = Diffusion(
        *(K, T), affinity="full" if full else "edges", feedback=feedback, normalization="walk" if walks else "row"
    )
    # Views, so that an input that another one was made of, as G is of Z, is not credited with what goes through that.
    views = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
    Z, G, dst, src, seed, alpha, lam, xi = views
    assert Z is not None
    assert lam is not None
    V = Z[order.nodes]
    if G is not None:
        G = G[order.entries]
    else:
        at_dst, at_src = ((V * weights).sum(dim=-1) for weights in (dst, src) if weights is not None)
        G = edge_softmax(order.pattern, at_dst, at_src, None, slope)
        if seed is not None:
            # A row of all heads is so many rows of these.
            rows = order.entries.long() * (of_all // G.size(1)) + first // G.size(1)
            G = seeded_dropout(G, seed, p, rows)
    coefficients = Coefficients(0.0 if alpha is None else alpha, lam, 0.0 if xi is None else xi)
    H = diffuse(V, G, ordered, coefficients, diffusion).H[order.nodes_back]
    wanted = [view for view in views if view is not None and view.requires_grad]
    found = iter(torch.autograd.grad(H, wanted, grad, create_graph=True, materialize_grads=True))
    return [next(found) if view is not None and view.requires_grad else None for view in views]


fused_diffusion = Operator(_fused_diffusion, _fake, _setup, _backward)
