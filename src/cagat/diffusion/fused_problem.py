"""What a fused diffusion works on."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from cagat.kernels.local_order import LocalOrder
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.scratch import scratch

if TYPE_CHECKING:
    from cagat.kernels.row_program import RowProgram


class FusedProblem(NamedTuple):
    """The graph, the sizes and the coefficients of a diffusion with S on all pairs, affinity on edges, no feedback.

    The rounds are those that matter: without affinity the features of a round enter nothing, so that all steps are one
    round; without context a step forgets all before it, so that a round has one step.

    Attributes:
        order: The graph, its nodes in an order in which neighbours are near.
        weights: The values of Abar, in both orders of the entries.
        layout: How features lie in their rows.
        alpha: The share of context.
        lam: The share of aggregated features, not 0.
        xi: The weight of the affinity.
        rounds: The number of rounds.
        steps: The number of steps in a round.
        walks: Whether features go down the chain by Abar, and not by its transpose: S <- alpha Abar S Abar + ...
    """

    order: LocalOrder
    weights: tuple[Tensor, Tensor]
    layout: RowLayout
    alpha: float
    lam: float
    xi: float
    rounds: int
    steps: int
    walks: bool = False

    @classmethod
    def reduced(
        cls,
        order: LocalOrder,
        weights: tuple[Tensor, Tensor],
        layout: RowLayout,
        coefficients: tuple[float, float, float],
        K: int,
        T: int,
        walks: bool = False,
    ) -> "FusedProblem":
        """The problem of K rounds of T steps, without what cannot matter."""
        alpha, lam, xi = coefficients
        rounds, steps = (K, T) if K * T > 0 else (0, 0)
        if alpha == 0:
            steps = min(steps, 1)
        if xi == 0:
            rounds, steps = (0, 0) if alpha == 0 else (min(rounds, 1), rounds * steps)
        return cls(order, weights, layout, alpha, lam, xi, rounds, steps, walks)

    @property
    def has_context(self) -> bool:
        """Whether attention is diffused at all."""
        return self.alpha != 0

    @property
    def has_affinity(self) -> bool:
        """Whether features enter the attention."""
        return self.xi != 0

    @property
    def depth(self) -> int:
        """The number of the last link of the chain of features."""
        return self.rounds * self.steps if self.has_context else 0

    @property
    def kept_bytes(self) -> int:
        """What the forward pass would keep for the backward pass."""
        affine = self.rounds if self.has_affinity else 0
        rows = (self.depth + 1 + affine) * self.order.pattern.num_rows * self.layout.width
        values = affine * self.order.pattern.num_entries * self.layout.padded_heads
        return (rows + values) * self.layout.dtype.itemsize

    def with_heads(self, heads: int) -> "FusedProblem":
        """The same for another number of heads."""
        return self._replace(layout=replace(self.layout, heads=heads))

    def levels(self, round_: int) -> int:
        """How many levels of the chain the matrix of a round (1, 2, ...) is multiplied with, in this and later ones."""
        return (self.rounds - round_ + 1) * self.steps if self.has_context else 1

    def blocks(self, round_: int) -> int:
        """How many rounds pass through the steps of a round: itself and, with context, all later ones."""
        return self.rounds - round_ + 1 if self.has_context else 1

    def program(self) -> "RowProgram":
        """An empty program on the graph."""
        # Imported here, so that importing cagat does not wait for the compiler.
        from cagat.kernels.row_program import RowProgram

        return RowProgram(self.order.pattern, self.weights, self.layout)

    def rows(self, *levels: int) -> Tensor:
        """Uninitialised features, or levels of them."""
        size = (*levels, self.order.pattern.num_rows, self.layout.width)
        return scratch(*size, dtype=self.layout.dtype)

    def values(self, *levels: int) -> Tensor:
        """Uninitialised values at the entries, or levels of them."""
        size = (*levels, self.order.pattern.num_entries, self.layout.padded_heads)
        return scratch(*size, dtype=self.layout.dtype)
