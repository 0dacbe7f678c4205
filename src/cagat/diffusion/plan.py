"""The fused diffusion: what is to be done, the memory for it, and the calls of the compiled passes."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cagat.diffusion import fused, fused_backward
from cagat.diffusion.diffuse import Diffusion
from cagat.diffusion.fused import EDGES, FULL, NO_AFFINITY
from cagat.kernels.csr_pattern import LocalOrder
from cagat.kernels.exchange import Calls
from cagat.kernels.numba_products import dropout
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_passes import RowPasses
from cagat.kernels.scratch import scratch

# A smaller coefficient is taken for this one: its gradient is divided by it.
_SMALLEST = 1e-20
# Tensors in the memory begin at multiples of so many numbers: with a line of the cache.
_ALIGNED = 16
# Small matrices are summed over blocks of rows, at most so many, of at least so many rows.
_GRAM_BLOCKS, _GRAM_HEIGHT = 64, 256


class Memory(NamedTuple):
    """What the forward pass leaves for the backward pass: what that can make again, and what it cannot."""

    remade: Tensor
    kept: Tensor


class Plan(NamedTuple):
    """A diffusion with S on all pairs, without what cannot matter.

    Attributes:
        order: The graph, its nodes in an order in which neighbours are near.
        weights: The values of Abar, in both orders of the entries.
        layout: How features lie in their rows.
        alpha: The share of context of each head, if there is any.
        lam: The share of aggregated features.
        xi: The weight of the affinity, if there is any.
        rounds: The number of rounds.
        steps: The number of steps per round.
        affinity: Where it is taken.
        feedback: Whether H is aggregated.
        walks: Whether features go down the chain by Abar, and not by its transpose: S <- alpha Abar S Abar + ...
    """

    order: LocalOrder
    weights: tuple[Tensor, Tensor]
    layout: RowLayout
    alpha: Tensor | None
    lam: Tensor
    xi: Tensor | None
    rounds: int
    steps: int
    affinity: int
    feedback: bool
    walks: bool

    @classmethod
    def reduced(
        cls, order: LocalOrder, weights: tuple[Tensor, Tensor], layout: RowLayout,
        coefficients: tuple[Tensor | None, Tensor, Tensor | None], diffusion: Diffusion,
    ) -> "Plan":  # fmt: skip
        """The plan of a diffusion with these coefficients of each head and these switches."""
        (alpha, lam, xi), rounds, steps = coefficients, diffusion.K, diffusion.T
        if rounds * steps == 0:  # S stays G.
            alpha = xi = None
        if alpha is None:  # A step forgets all before it.
            steps = 1
        # If the features of a round enter nothing, all steps are one round, if there are any.
        if xi is None and not diffusion.feedback:
            rounds, steps = (0, 0) if alpha is None else (1, rounds * steps)
        affinity = NO_AFFINITY if xi is None else FULL if diffusion.affinity == "full" else EDGES
        walks = diffusion.normalization == "walk"
        return cls(order, weights, layout, alpha, lam, xi, rounds, max(1, steps), affinity, diffusion.feedback, walks)

    @property
    def _steps_of_all_rounds(self) -> int:
        return self.rounds if self.alpha is None else self.steps * self.rounds * (self.rounds + 1) // 2

    @property
    def _sizes(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The shapes of what stands in each part of the memory, one after the other.

        In the first, the chain of Z, or with feedback Z and the chain of each round without its start; and with
        affinity on the edges, the matrix of each round. In the second, the features before each round, if they enter
        it; and with affinity on all pairs, the small matrices of each step and their transposes.
        """
        levels = 0 if self.alpha is None else self._steps_of_all_rounds if self.feedback else self.rounds * self.steps
        has_hidden = self.affinity != NO_AFFINITY or self.feedback
        chain, B = (levels + 1, *self._level), (self.rounds if self.affinity == EDGES else 0, *self._matrix)
        hidden = (self.rounds if has_hidden else 0, *self._level)
        return (chain, B), (hidden, (self._steps_of_all_rounds if self.affinity == FULL else 0, 2, *self._small))

    @property
    def _level(self) -> tuple[int, int, int]:
        return self.layout.panels, self._held, self.layout.lanes

    @property
    def _held(self) -> int:
        """The number of our rows and those of the halo."""
        exchange = self.order.exchange
        return self.order.pattern.num_rows + (0 if exchange is None else exchange.halo)

    @property
    def _matrix(self) -> tuple[int, int]:
        exchange = self.order.exchange
        others = 0 if exchange is None else exchange.values
        return self.order.pattern.num_entries + others, self.layout.padded_heads

    @property
    def _small(self) -> tuple[int, int]:
        return self.layout.width // self.layout.padded_heads, self.layout.width

    @property
    def elements(self) -> tuple[int, int]:
        """How many numbers there are in each part of the memory, each tensor beginning with a line of the cache."""
        remade, kept = (sum(_padded(math.prod(size)) for size in sizes) for sizes in self._sizes)
        return remade, kept

    def rows_of_Z(self, memory: Memory) -> Tensor:
        """The part of the memory that the chain begins with."""
        return memory.remade[: math.prod(self._level)].view(self._level)

    def _grams(self, memory: Memory) -> Tensor:
        """The part of the memory that ends it."""
        hidden, size = self._sizes[1]
        start = _padded(math.prod(hidden))
        return memory.kept[start : start + math.prod(size)].view(size)

    def memory(self, kept: Tensor | None = None) -> Memory:
        """Room for both, or for what is made again beside what was kept."""
        remade, own = self._sizes
        return Memory(self._room(remade), self._room(own) if kept is None else kept)

    def _room(self, sizes: tuple[tuple[int, ...], ...]) -> Tensor:
        lengths = [math.prod(size) for size in sizes]
        part, end = self._scratch(sum(map(_padded, lengths))), 0
        for length in lengths:
            if length % _ALIGNED:  # Between the tensors: it is an output of an operator.
                part[end + length : end + _padded(length)] = 0
            end += _padded(length)
        return part

    def matrix(self, *levels: int) -> Tensor:
        """Room for values at the entries."""
        return self._scratch(*levels, *self._matrix)

    def vectors(self) -> Tensor:
        """Room for two vectors of heads for each node."""
        return self._scratch(2, self._held, self.layout.padded_heads)

    def _scratch(self, *size: int) -> Tensor:
        return scratch(*size, dtype=self.layout.dtype)

    def passes(self) -> RowPasses:
        """What runs compiled passes on the graph."""
        return RowPasses(self.order.pattern, self.weights, self.layout, exchange=self.order.exchange)

    def calls(self) -> Calls | None:
        """What passes over a graph in parts call."""
        exchange = self.order.exchange
        return None if exchange is None else Calls(exchange, self._level, self._matrix, self.layout.dtype)

    def features(self) -> Tensor:
        """Room for features as they are returned."""
        return self._scratch(self.order.pattern.num_rows, self.layout.heads, self.layout.channels)

    def lay_out(self, features: Tensor, rows: Tensor) -> Tensor | None:
        """The features for a pass that lays them out in rows, or nothing if it cannot, and it was done here."""
        if self.layout.is_exact:
            return features.contiguous()
        rows[:, : len(features)].copy_(self.layout.rows(features[self.order.nodes]))
        return None

    def returned(self, features: Tensor, rows: Tensor) -> Tensor:
        """The features that a pass has filled, or if it cannot, those of the rows."""
        if not self.layout.is_exact:
            features.index_copy_(0, self.order.nodes.long(), self.layout.features(rows[:, : len(features)]))
        return features

    def coefficients(self) -> tuple[Any, Any, Any]:
        """Alpha, lam and xi as numbers of each head, in double precision."""
        none = np.zeros(self.layout.heads)
        given = (none if c is None else c.numpy().astype(np.float64) for c in (self.alpha, self.lam, self.xi))
        alpha, lam, xi = given
        return alpha if self.alpha is None else np.maximum(alpha, _SMALLEST), np.maximum(lam, _SMALLEST), xi

    def _common(self, passes: RowPasses, calls: Calls | None, G: Tensor, memory: Memory) -> tuple[int, ...]:
        """What both passes are told first."""
        size, order = self.layout.dtype.itemsize, self.order
        level, matrix, small = (math.prod(shape) * size for shape in (self._level, self._matrix, self._small))
        alpha, lam, xi = self.coefficients()
        addresses = []
        for part, sizes in zip(memory, self._sizes, strict=True):
            address = passes.address(part)
            for length in map(math.prod, sizes):
                addresses.append(address if length else 0)
                address += _padded(length) * size
        chain, B, hidden, grams = addresses
        common = fused.Common(
            counters=0,  # They are made by the passes.
            nothing=0,
            nodes=order.pattern.num_rows,
            height=self._gram_height,
            channels=self._small[0],
            level=level,
            matrix=matrix,
            small=small,
            rounds=self.rounds,
            steps=self.steps,
            affinity=self.affinity,
            has_context=self.alpha is not None,
            feedback=self.feedback,
            walks=self.walks,
            symmetric=order.pattern.is_symmetric,
            adds_Z=any(one != 1 for one in lam.tolist()),
            order=order.nodes.data_ptr(),
            entries=order.entries.data_ptr(),
            G=passes.address(G),
            chain=chain,
            hidden=hidden,
            B=B,
            grams=grams,
            blocks=passes.address(self._gram_blocks()),
            exchange=0 if calls is None else calls.address,
            halves=1 if calls is None else 2,
        )
        one = np.ones_like(lam)
        scales = passes.scales(one, alpha, 1 - alpha, xi, lam, 1 - lam, lam * alpha, lam * (1 - alpha), lam * xi)
        return (*common, *scales)

    @property
    def _gram_height(self) -> int:
        return max(_GRAM_HEIGHT, -(-self.order.pattern.num_rows // _GRAM_BLOCKS))

    def _gram_blocks(self) -> Tensor | None:
        if self.affinity != FULL:
            return None
        return self._scratch(-(-self.order.pattern.num_rows // self._gram_height), *self._small)

    def forward(self, passes: RowPasses, Z: Tensor | None, given: Tensor | None, G: Tensor, memory: Memory) -> Tensor:
        """Run all rounds, and give the features.

        Args:
            passes: What runs them.
            Z: The features, or nothing if their rows are in the memory already.
            given: GAT's attention in the order of the given entries, or nothing if it is in G already.
            G: GAT's attention in the local order.
            memory: Where to write what the backward pass reads.
        """
        H = self._scratch(*self._level)
        address, out = passes.address, self.features()
        Z = None if Z is None else self.lay_out(Z, self.rows_of_Z(memory))
        Y = self._scratch(2, *self._level) if self.alpha is not None else None
        arguments = fused.Forward(
            Z=address(Z),
            given=address(None if given is None else self.layout.values(given)),
            Y=address(Y),
            other_Y=address(None if Y is None else Y[1]),
            H=address(H),
            out=address(out) if self.layout.is_exact else 0,
        )
        self._run_forward(passes, G, memory, arguments)
        return self.returned(out, H)

    def again(self, passes: RowPasses, Z: Tensor, G: Tensor, kept: Tensor) -> Memory:
        """What the backward pass reads, of which only a part was kept: the same bits in less time than they took."""
        memory = self.memory(kept)
        Z_as_given = passes.address(self.lay_out(Z, self.rows_of_Z(memory)))
        self._run_forward(passes, G, memory, fused.Forward(Z=Z_as_given))
        return memory

    def _run_forward(self, passes: RowPasses, G: Tensor, memory: Memory, arguments: fused.Forward) -> None:
        most = 4 + 3 * self.rounds + 5 * max(self.rounds, self._steps_of_all_rounds)
        calls = self.calls()
        passes.run(fused.forward, (*self._common(passes, calls, G, memory), *arguments), most, calls)

    def backward(
        self, passes: RowPasses, memory: Memory, G: Tensor, grad: Tensor, *, learns: bool, has_given: bool
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor] | None]:
        """The gradients at Z, at G, and at the coefficients if somebody learns them, given that at H.

        If G was given, so are the first two, else they are rows and in the local order.
        """
        nodes = self.order.pattern.num_rows
        address, level, rounds = passes.address, self._level, self.rounds
        has_products = rounds > 0 or learns
        dH, D, dG = self._gradients(has_products)
        dZ = self._scratch(*level)
        if self.layout.is_exact and not grad.is_contiguous():
            grad = dZ.flatten()[: grad.numel()].view(grad.shape).copy_(grad)  # dZ is made when this has been read.
        given = self.lay_out(grad, dH)
        out = self.features() if has_given else None
        dG_given = torch.empty_like(dG) if has_given else None
        depth = 0 if self.alpha is None else rounds * self.steps
        at_rounds = rounds if self.affinity == EDGES else 1
        unused = 0 if self.feedback else 1  # The gradient at the first level is dZ then.
        dV = address(self._scratch(depth + 1 - unused, *level)) - unused * math.prod(level) * grad.itemsize
        d_grams = self._scratch(*self._sizes[1][1])
        dots = torch.zeros(5, nodes, self.layout.padded_heads, dtype=self.layout.dtype) if learns else None
        dot = [0] * 5 if dots is None else [address(one) for one in dots]
        # The mirror image of an entry may be elsewhere, or with another process.
        is_symmetric = self.order.pattern.is_symmetric and self.order.exchange is None
        needs_rows = self.affinity == EDGES and not is_symmetric
        arguments = fused_backward.Backward(
            grad=address(given),
            dH=address(dH),
            dH_full=address(self._scratch(rounds, *level).zero_() if self.affinity == FULL else None),
            D=address(D),
            other_D=address(dH if has_products else None),  # When D is made of dH, that has been read.
            dV=dV,
            dZ=address(dZ),
            direct=address(self.matrix().zero_() if has_products else None),
            dB=address(self.matrix(at_rounds).zero_() if rounds > 0 else None),
            by_rows=address(self.matrix() if needs_rows else None),
            dG=address(dG),
            dG_given=address(dG_given),
            d_grams=address(d_grams),
            out=address(out) if self.layout.is_exact else 0,
            coefficients=len(dot) if learns else 0,
            **dict(zip(("dot_terms", "dot_levels", "dot_Z", "dot_G", "dot_xi"), dot, strict=True)),
            levels=passes.scales(*map(float, range(depth + 1)))[0] if learns else 0,
        )
        most = 9 + 4 * rounds + 7 * (self._steps_of_all_rounds + rounds) + depth
        calls = self.calls()
        passes.run(fused_backward.backward, (*self._common(passes, calls, G, memory), *arguments), most, calls)
        coefficients = None if dots is None else self._coefficient_gradients(dots, self._grams(memory), d_grams)
        if out is None or dG_given is None:
            return dZ, dG, coefficients
        return self.returned(out, dZ), self.layout.unpadded(dG_given[: self.order.pattern.num_entries]), coefficients

    def _gradients(self, has_products: bool) -> tuple[Tensor, Tensor | None, Tensor]:
        """Room for the gradient at H; for that which goes down the chain; and, where both were, for that at G."""
        if not has_products:
            return self._scratch(*self._level), None, self.matrix()
        one, matrix = math.prod(self._level), math.prod(self._matrix)
        shared = self._scratch(max(2 * _padded(one), matrix))
        dH, D = (shared[start : start + one].view(self._level) for start in (0, _padded(one)))
        return dH, D, shared[:matrix].view(self._matrix)

    def _coefficient_gradients(self, dots: Tensor, grams: Tensor, d_grams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        alpha, lam, _ = self.coefficients()
        heads = self.layout.heads
        # By NumPy, and not by torch, whose sums depend on the number of threads.
        terms, levels, at_Z, at_G, at_xi = dots.numpy().sum(axis=1, dtype=np.float64)[:, :heads]
        d_alpha = np.zeros(heads) if self.alpha is None else levels / alpha - at_G
        d_xi = at_xi / 2
        if self.affinity == FULL:
            products = (grams[:, 0] * d_grams[:, 0]).view(-1, self.layout.padded_heads)
            d_xi = products.numpy().sum(axis=0, dtype=np.float64)[:heads]
        gradients = (d_alpha, terms / lam - at_Z, d_xi)
        return tuple(torch.from_numpy(gradient).to(self.layout.dtype) for gradient in gradients)  # type: ignore[return-value]


def _padded(length: int) -> int:
    return length + -length % _ALIGNED


class AttentionWeights(NamedTuple):
    """What GAT's attention is made with.

    Attributes:
        dst: The weights of the targets' features, ``(1, heads, channels)``.
        src: The weights of the sources' features.
        slope: LeakyReLU's slope.
        p: The share of entries that are dropped.
        seed: What decides on which they are.
        first: The number of the first of these heads,
        of_all: of how many.
        scale: What entries are multiplied with, if with anything.
    """

    dst: Tensor
    src: Tensor
    slope: float
    p: float
    seed: int
    first: int
    of_all: int
    scale: Tensor | None

    @property
    def _has_changes(self) -> bool:
        return self.p > 0 or self.scale is not None

    def forward(self, plan: Plan, passes: RowPasses, Z: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """G; the softmax that it was made of, empty if that is G itself; and the logits. Also writes the rows of Z."""
        logits, softmax = plan.vectors(), plan.matrix()
        calls = plan.calls()
        arguments = self._arguments(plan, passes, calls, plan.lay_out(Z, rows), rows, logits, softmax)
        passes.run(fused.attend, arguments, 3, calls)
        if not self._has_changes:
            return softmax, softmax.new_empty(0), logits
        return self.changed(plan, softmax), softmax, logits

    def backward(
        self, plan: Plan, passes: RowPasses, kept: tuple[Tensor, Tensor, Tensor], V: Tensor, dV: Tensor, dG: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """The gradients at Z and at both weights, given those at the rows and at G."""
        G, softmax, logits = kept
        dG = self.changed(plan, dG) if self._has_changes else dG
        out, at_nodes = plan.features(), plan.vectors()
        calls = plan.calls()
        kept_softmax = softmax if self._has_changes else G
        arguments = self._arguments(plan, passes, calls, None, dV, logits, kept_softmax)._replace(
            grad=passes.address(dG), grad_logit=passes.address(plan.matrix()), grad_dst=passes.address(at_nodes),
            grad_src=passes.address(at_nodes[1]), out=passes.address(out) if plan.layout.is_exact else 0,
        )  # fmt: skip
        passes.run(fused_backward.attend_backward, arguments, 4, calls)
        # Of all products of a channel of one head with another head's gradient, those with its own. With the short side
        # first they take a quarter of the time.
        heads, lanes = plan.layout.padded_heads, plan.layout.lanes
        nodes = plan.order.pattern.num_rows
        products = torch.stack([side[:nodes].t() @ panel[:nodes] for side in at_nodes for panel in V])
        products = products.view(2, plan.layout.panels, heads, lanes // heads, heads)
        by_channel = products.diagonal(dim1=2, dim2=4).reshape(2, -1, heads)
        by_head = by_channel[:, : plan.layout.channels, : plan.layout.heads].transpose(1, 2)
        d_dst, d_src = by_head[:, None].contiguous().unbind()
        return plan.returned(out, dV), d_dst.clone(), d_src.clone()

    def _arguments(
        self, plan: Plan, passes: RowPasses, calls: Calls | None, Z: Tensor | None, rows: Tensor, logits: Tensor,
        softmax: Tensor,
    ) -> fused.Attend:  # fmt: skip
        weights = (passes.address(plan.layout.rows(weight).contiguous()) for weight in (self.dst, self.src))
        att_dst, att_src = weights
        return fused.Attend(
            channels=plan.layout.channels, order=plan.order.nodes.data_ptr(), Z=passes.address(Z),
            rows=passes.address(rows), att_dst=att_dst, att_src=att_src, slope=passes.scales(self.slope)[0],
            dst=passes.address(logits), src=passes.address(logits[1]), softmax=passes.address(softmax),
            exchange=0 if calls is None else calls.address, halves=1 if calls is None else 2,
        )  # fmt: skip

    def changed(self, plan: Plan, values: Tensor) -> Tensor:
        """Values at the entries, dropped as they would be in the order of the given graph, and scaled."""
        exchange = plan.order.exchange
        positions = plan.order.entries if exchange is None else exchange.positions
        values = (
            dropout(values, self.seed, self.p, positions, self.of_all, self.first) if self.p > 0 else values.clone()
        )
        if self.scale is not None:
            values[: len(self.scale)] *= self.scale[:, None]
        return values
