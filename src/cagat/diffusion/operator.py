"""The features that the rounds end in, the fastest way there is: one torch operator where it can be.

The operator makes GAT's attention, or is given it, and runs all rounds in compiled passes with a gradient written by
hand. It serves every switch but ``support="edges"``, with coefficients that are numbers or learnt, on the CPU. What it
does not serve is made of single products, and so are second gradients.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.library import custom_op

from cagat.diffusion.attention import is_zero
from cagat.diffusion.diffuse import Coefficients, Diffusion, diffuse
from cagat.kernels import CSRGraph, CSRPattern, edge_softmax
from cagat.kernels.csr_pattern import LocalOrder
from cagat.kernels.operators import Operator, is_traced, seeded_dropout
from cagat.kernels.row_layout import row_layout
from cagat.memory import total_memory

if TYPE_CHECKING:
    from cagat.diffusion.plan import AttentionWeights, Plan

# Above so many bytes that the passes of a step work with, heads are worked on in groups. Half of the heads at a time
# take a tenth longer, a quarter half as long again. Of a group less is kept for the gradient, which makes the rest
# again.
AT_ONCE = total_memory() // 6

# The same for evaluation by single products.
SINGLE_AT_ONCE = 2**30


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

    def chunk(self, groups: int, dim: int) -> "list[GATAttention]":
        """The attention of groups of heads, as tensors are split into chunks."""
        weights = zip(self.dst.chunk(groups, dim), self.src.chunk(groups, dim), strict=True)
        return [self._replace(dst=dst, src=src) for dst, src in weights]


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
    heads = int(Z.size(1))
    if not is_fused(Z, graph, diffusion) or dtype != Z.dtype:
        # Nothing is saved while gradients keep all results. The features of all steps stand side by side in one wide
        # product, and its result is as wide.
        head = 2 * (diffusion.K * diffusion.T + 1) * Z.size(0) * Z.size(2) * Z.itemsize
        size = heads if torch.is_grad_enabled() else heads_at_once(heads, head, SINGLE_AT_ONCE)
        run: Run = partial(_single_products, graph, diffusion)
    elif is_zero(coefficients.lam):
        return Z.clone()
    else:
        size = heads_at_once(heads, _bytes_per_head(Z, graph, coefficients, diffusion), AT_ONCE)
        drops = isinstance(attention, GATAttention) and attention.dropout > 0
        seed = torch.randint(0, 2**62, (1,)) if drops else None
        run = partial(_fused, graph, diffusion, seed, heads)
    if not graph.is_whole:  # Processes that hold parts of a graph must all do the same, whatever they hold.
        size = heads
    return _by_heads(size, run, Z, attention, coefficients)


Run = Callable[[int, Tensor, Tensor | GATAttention, Coefficients], Tensor]
"""Makes the features of some heads, given the number of the first one."""


def _bytes_per_head(Z: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion) -> int:
    """About how much the forward and the backward pass work with: features of all nodes, and values of all entries."""
    K, T = diffusion.K, diffusion.T
    has_affinity = K * T > 0 and not is_zero(coefficients.xi)
    gradients = 0 if is_zero(coefficients.alpha) else K * T
    chain = gradients * (K + 1) // 2 if diffusion.feedback else gradients
    rounds = K if has_affinity or diffusion.feedback else 0
    # The chain and the gradients along it, the features of each round, and those that come and go; the matrix of each
    # round and its gradient, and G.
    levels, matrices = chain + gradients + rounds + 5, 2 * (K if has_affinity else 0) + 4
    return (levels * graph.num_nodes * int(Z.size(2)) + matrices * graph.num_entries) * Z.itemsize


def heads_at_once(heads: int, bytes_per_head: int, limit: int) -> int:
    """How many heads are worked on together: the most that fit, of the numbers that divide all of them."""
    size = heads
    while size > 1 and (heads % size or size * bytes_per_head > limit):
        size -= 1
    return size


def _by_heads(size: int, run: Run, Z: Tensor, attention: Tensor | GATAttention, coefficients: Coefficients) -> Tensor:
    """The features, so many heads at a time: they meet nowhere, and a pass's memory is free again after each group."""
    groups = int(Z.size(1)) // size
    if groups == 1:
        return run(0, Z, attention, coefficients)
    attentions: Iterable[Tensor | GATAttention] = attention.chunk(groups, 1)
    each = zip(Z.chunk(groups, 1), attentions, coefficients.chunk(groups), strict=True)
    return torch.cat([run(number * size, *group) for number, group in enumerate(each)], dim=1)


def _single_products(
    graph: CSRGraph, diffusion: Diffusion, _: int, Z: Tensor, G: Tensor | GATAttention, coefficients: Coefficients
) -> Tensor:
    assert isinstance(G, Tensor)
    return diffuse(Z, G, graph, coefficients, diffusion).H


def _fused(
    graph: CSRGraph, diffusion: Diffusion, seed: Tensor | None, of_all: int, first: int, Z: Tensor,
    attention: Tensor | GATAttention, coefficients: Coefficients,
) -> Tensor:  # fmt: skip
    alpha, lam, xi = (_of_heads(coefficient, Z) for coefficient in coefficients)
    assert lam is not None
    of_attention: list[Any] = [attention, None, None, None, None]
    p, slope = 0.0, 0.0
    if isinstance(attention, GATAttention):
        scale = graph.local_attention_scale(Z.dtype) if diffusion.normalization == "gcn" else None
        of_attention = [None, attention.dst, attention.src, seed, scale]
        p, slope = attention.dropout, attention.negative_slope
    walks = diffusion.normalization == "walk"
    switches = diffusion.K, diffusion.T, diffusion.affinity == "full", diffusion.feedback, walks
    inputs = (Z, *of_attention, alpha, lam, xi, p, slope, first, of_all, *switches)
    if not graph.is_whole:
        part = graph.local_order(), graph.local_transition(diffusion.normalization, Z.dtype)
        in_part: Tensor = _InParts.apply(part, *inputs)  # type: ignore[no-untyped-call]
        return in_part
    H: Tensor = fused_diffusion(_as_tensors(graph, diffusion.normalization, Z.dtype), *inputs)[0]
    return H


def can_attend(Z: Tensor, graph: CSRGraph, coefficients: Coefficients, diffusion: Diffusion, dropout: float) -> bool:
    """Whether :func:`diffuse_features` can make GAT's attention itself."""
    return dropout < 1 and not is_zero(coefficients.lam) and is_fused(Z, graph, diffusion)


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


class Inputs(NamedTuple):
    """What the operator takes beside the graph, as its schema asks for it: nine tensors, numbers, and switches.

    Attributes:
        Z: The features.
        G: GAT's attention, or nothing if it is to be made.
        dst: Then the weights of the targets' features,
        src: those of the sources' features,
        seed: what decides on the entries that are dropped, if any are,
        scale: and what entries are multiplied with, in the local order, if with anything.
        alpha: The share of context of each head, if there is any.
        lam: The share of aggregated features.
        xi: The weight of the affinity, if there is any.
        p: The share of entries that are dropped.
        slope: LeakyReLU's slope.
        first: The number of the first of these heads,
        of_all: of how many.
        K: The number of rounds.
        T: The number of steps per round.
        full: Whether affinity is on all pairs.
        feedback: Whether H is aggregated.
        walks: Whether diffusion is that of a walk.
    """

    Z: Tensor
    G: Tensor | None
    dst: Tensor | None
    src: Tensor | None
    seed: Tensor | None
    scale: Tensor | None
    alpha: Tensor | None
    lam: Tensor
    xi: Tensor | None
    p: float
    slope: float
    first: int
    of_all: int
    K: int
    T: int
    full: bool
    feedback: bool
    walks: bool

    @property
    def diffusion(self) -> Diffusion:
        """The switches as one."""
        affinity, normalization = "full" if self.full else "edges", "walk" if self.walks else "row"
        return Diffusion(self.K, self.T, "full", affinity, self.feedback, normalization)  # type: ignore[arg-type]

    @property
    def is_group(self) -> bool:
        """Whether these are some of the heads, since memory is short: no more is kept than cannot be made again."""
        return self.of_all > self.Z.size(1)

    @property
    def has_changes(self) -> bool:
        """Whether entries of an attention that is made are dropped or scaled."""
        return self.G is None and (self.p > 0 or self.scale is not None)

    def plan(self, part: Part) -> "Plan":
        """What is to be done on a graph."""
        # Imported here, so that importing cagat does not wait for the compiler.
        from cagat.diffusion.plan import Plan

        alpha, lam, xi = (None if c is None else c.detach() for c in (self.alpha, self.lam, self.xi))
        assert lam is not None
        layout = row_layout(int(self.Z.size(1)), int(self.Z.size(2)), self.Z.dtype)
        return Plan.reduced(*part, layout, (alpha, lam, xi), self.diffusion)

    def attention(self) -> "AttentionWeights | None":
        """What GAT's attention is made with, unless it is given."""
        from cagat.diffusion.plan import AttentionWeights

        if self.dst is None or self.src is None:
            return None
        seed = 0 if self.seed is None else int(self.seed)
        dropping = (self.p, seed, self.first, self.of_all)
        return AttentionWeights(self.dst.detach(), self.src.detach(), self.slope, *dropping, self.scale)


_TENSORS = 9
_KINDS = {Tensor: "Tensor", Tensor | None: "Tensor?", float: "float", int: "int", bool: "bool"}
_SCHEMA = ", ".join(["Tensor[] graph", *(f"{_KINDS[kind]} {name}" for name, kind in Inputs.__annotations__.items())])


def _fused_diffusion(graph: list[Tensor], *inputs: Any) -> tuple[Tensor, ...]:
    """The features, and what the gradient needs: the plan's memory, G, G before dropout, and the logits.

    What the gradient makes again is empty.
    """
    return _forward(_graph_of(graph), Inputs(*inputs))


def _forward(part: Part, inputs: Inputs) -> tuple[Tensor, ...]:
    plan, attention, Z = inputs.plan(part), inputs.attention(), inputs.Z.detach()
    passes, memory = plan.passes(), plan.memory()
    if attention is not None:
        local, softmax, logits = attention.forward(plan, passes, Z, plan.rows_of_Z(memory))
        H = plan.forward(passes, None, None, local, memory)
    else:
        assert inputs.G is not None
        local, softmax, logits = plan.matrix(), Z.new_empty(0), Z.new_empty(0)
        H = plan.forward(passes, Z, inputs.G.detach(), local, memory)
    remade, kept = memory
    if inputs.is_group:
        remade, local = Z.new_empty(0), Z.new_empty(0) if inputs.has_changes else local
    return H, remade, kept, local, softmax, logits


def _fake(graph: list[Tensor], *inputs: Any) -> tuple[Tensor, ...]:
    given = Inputs(*inputs)
    plan, Z, has_changes = given.plan(_graph_of(graph)), given.Z, given.has_changes
    entries, heads, (remade, kept) = graph[1].size(0), plan.layout.padded_heads, plan.elements
    return (
        torch.empty_like(Z, memory_format=torch.contiguous_format),
        Z.new_empty(0 if given.is_group else remade),
        Z.new_empty(kept),
        Z.new_empty(0) if given.is_group and has_changes else Z.new_empty(entries, heads),
        Z.new_empty(entries, heads) if has_changes else Z.new_empty(0),
        Z.new_empty(2, Z.size(0), heads) if given.G is None else Z.new_empty(0),
    )


def _gradients(graph: list[Tensor], *arguments: Any) -> list[Tensor]:
    """The gradients at Z, at G or at both weights, and at the coefficients if they are learnt; not differentiable."""
    *inputs, learns, kept, grad = arguments
    return _backward_of(_graph_of(graph), Inputs(*inputs), learns, kept, grad)


def _backward_of(part: Part, inputs: Inputs, learns: bool, kept: list[Tensor], grad: Tensor) -> list[Tensor]:
    from cagat.diffusion.plan import Memory

    plan, attention, grad = inputs.plan(part), inputs.attention(), grad.detach()
    *parts, local, softmax, logits = kept
    passes, has_given, memory = plan.passes(), attention is None, Memory(*parts)
    if inputs.is_group:
        if attention is not None and inputs.has_changes:
            local = attention.changed(plan, softmax)
        memory = plan.again(passes, inputs.Z.detach(), local, memory.kept)
    dZ, dG, coefficients = plan.backward(passes, memory, local, grad, learns=learns, has_given=has_given)
    found: tuple[Tensor, ...] = (dZ, dG)
    if attention is not None:
        found = attention.backward(plan, passes, (local, softmax, logits), plan.rows_of_Z(memory), dZ, dG)
    return [*found, *(coefficients or ())]


fused_gradients = custom_op(
    "cagat::fused_diffusion_backward",
    _gradients,
    mutates_args=(),
    schema=f"({_SCHEMA}, bool learns, Tensor[] kept, Tensor grad) -> Tensor[]",
)


@fused_gradients.register_fake
def _(graph: list[Tensor], *arguments: Any) -> list[Tensor]:
    *inputs, learns, _, _ = arguments
    given = Inputs(*inputs)
    wanted = [given.Z, given.dst, given.src] if given.G is None else [given.Z, given.G]
    wanted += [given.lam] * (3 if learns else 0)
    return [torch.empty_like(x, memory_format=torch.contiguous_format) for x in wanted if x is not None]


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    graph, tensors, ctx.numbers = inputs[0], inputs[1 : 1 + _TENSORS], inputs[1 + _TENSORS :]
    ctx.save_for_backward(*graph, *tensors, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    *graph_and_tensors, remade, memory, local, softmax, logits = ctx.saved_tensors
    graph, kept = graph_and_tensors[:-_TENSORS], [remade, memory, local, softmax, logits]
    inputs = Inputs(*graph_and_tensors[-_TENSORS:], *ctx.numbers)
    if grad is None:
        return (None,) * len(inputs)
    if torch.is_grad_enabled():  # Somebody wants to differentiate it: backward(create_graph=True).
        return _differentiable_gradients(_graph_of(graph), inputs, grad)
    learns = _learns(ctx)
    operator: Any = fused_gradients if is_traced(grad) else _gradients
    return _by_input(inputs, operator(graph, *inputs, learns, kept, grad), learns)


def _learns(ctx: Any) -> bool:
    """Whether any coefficient is learnt."""
    _, *wanted = ctx.needs_input_grad
    needs: Any = Inputs(*wanted)
    return bool(needs.alpha or needs.lam or needs.xi)


def _by_input(inputs: Inputs, found: list[Tensor], learns: bool) -> tuple[Any, ...]:
    """What :func:`_gradients` has found, for each input."""
    of_attention = ("dst", "src") if inputs.G is None else ("G",)
    names = ("Z", *of_attention, *(("alpha", "lam", "xi") if learns else ()))
    gradients = dict(zip(names, found, strict=True))
    return tuple(None if given is None else gradients.get(name) for name, given in inputs._asdict().items())


class _InParts(torch.autograd.Function):
    """The fused diffusion on the part of a graph that a process holds; not differentiable twice, nor traced."""

    @staticmethod
    def forward(ctx: Any, part: Part, *inputs: Any) -> Tensor:
        H, *kept = _forward(part, Inputs(*inputs))
        ctx.part, ctx.numbers = part, inputs[_TENSORS:]
        ctx.save_for_backward(*inputs[:_TENSORS], *kept)
        return H

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        tensors, kept = ctx.saved_tensors[:_TENSORS], list(ctx.saved_tensors[_TENSORS:])
        inputs, learns = Inputs(*tensors, *ctx.numbers), _learns(ctx)
        found = _backward_of(ctx.part, inputs, learns, kept, grad)
        return (None, *_by_input(inputs, found, learns))


def _differentiable_gradients(part: Part, inputs: Inputs, grad: Tensor) -> tuple[Any, ...]:
    """The same gradients through single products, for somebody who will differentiate them again."""
    order, transition = part
    ordered = CSRGraph.from_transition(order.pattern, transition)
    # Views, so that an input that another one was made of, as G is of Z, is not credited with what goes through that.
    views: list[Any] = [one.view_as(one) if isinstance(one, Tensor) else one for one in inputs]
    viewed = Inputs(*views)
    V = viewed.Z[order.nodes]
    if viewed.G is not None:
        G = viewed.G[order.entries]
    else:
        at_dst, at_src = ((V * weights).sum(dim=-1) for weights in (viewed.dst, viewed.src) if weights is not None)
        G = edge_softmax(order.pattern, at_dst, at_src, None, inputs.slope)
        if viewed.seed is not None:
            # A row of all heads is so many rows of these.
            rows = order.entries.long() * (inputs.of_all // G.size(1)) + inputs.first // G.size(1)
            G = seeded_dropout(G, viewed.seed, inputs.p, rows)
        if viewed.scale is not None:
            G = G * viewed.scale[:, None]
    alpha, xi = (0.0 if c is None else c for c in (viewed.alpha, viewed.xi))
    H = diffuse(V, G, ordered, Coefficients(alpha, viewed.lam, xi), inputs.diffusion).H[order.nodes_back]
    are_wanted = [isinstance(view, Tensor) and view.requires_grad for view in views]
    wanted = [view for view, is_wanted in zip(views, are_wanted, strict=True) if is_wanted]
    found = iter(torch.autograd.grad(H, wanted, grad, create_graph=True, materialize_grads=True))
    return tuple(next(found) if is_wanted else None for is_wanted in are_wanted)


fused_diffusion = Operator(
    _fused_diffusion,
    _fake,
    _setup,
    _backward,
    schema=f"({_SCHEMA}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
