"""The part of a graph that one process holds, and the rows that it exchanges with the others."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.distributed.world import World
from cagat.errors import ConfigError
from cagat.kernels import CSRGraph, CSRPattern, spmm

Weights = tuple[Tensor, Tensor]


class Halo(NamedTuple):
    """Which rows go where, found once for a partition.

    Attributes:
        world: The processes.
        nodes: The nodes of other processes that neighbour ours, by process, then by number.
        received: How many of them each process holds.
        rows: Which of our rows are sent, by the process that gets them, then by number.
        sent: How many of them each process gets.
    """

    world: World
    nodes: Tensor
    received: list[int]
    rows: Tensor
    sent: list[int]

    @classmethod
    def of(cls, row: Tensor, col: Tensor, owner: Tensor, world: World) -> "Halo":
        """Find the halo of one process.

        Args:
            row: The rows of the entries of the whole adjacency matrix.
            col: Their columns.
            owner: The process that holds each node.
            world: The processes.
        """
        num_nodes = owner.numel()
        apart = owner[row] != owner[col]
        row, col = row[apart], col[apart]
        # The rows of A need their columns, and those of its transpose the other way round.
        needing, node = torch.cat([owner[row], owner[col]]), torch.cat([col, row])
        for_us, from_us = needing == world.rank, owner[node] == world.rank
        received = torch.unique(owner[node[for_us]] * num_nodes + node[for_us])
        sent = torch.unique(needing[from_us] * num_nodes + node[from_us])
        own = (owner == world.rank).nonzero().flatten()
        counts = [
            torch.bincount(torch.div(key, num_nodes, rounding_mode="floor"), minlength=world.size).tolist()
            for key in (received, sent)
        ]
        rows = torch.searchsorted(own, sent % num_nodes)
        return cls(world, received % num_nodes, counts[0], rows, counts[1])

    def gather(self, x: Tensor) -> Tensor:
        """Our rows, and after them those of :attr:`nodes`; gradients go back to the processes that hold these."""
        if self.world.size == 1:
            return x
        extended: Tensor = _Exchange.apply(x, self)  # type: ignore[no-untyped-call]
        return extended

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum of what all processes have; gradients are summed likewise."""
        if self.world.size == 1:
            return x
        total: Tensor = _Sum.apply(x, self.world)  # type: ignore[no-untyped-call]
        return total

    def to(self, device: torch.device | str) -> "Halo":
        """The same with its indices on another device."""
        return self._replace(nodes=self.nodes.to(device), rows=self.rows.to(device))


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, halo: Halo) -> Tensor:
        ctx.halo = halo
        return torch.cat([x, halo.world.exchange(x[halo.rows], halo.sent, halo.received)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        halo: Halo = ctx.halo
        own = grad.size(0) - halo.nodes.numel()
        back = halo.world.exchange(grad[own:], halo.received, halo.sent)
        return grad[:own].index_add(0, halo.rows, back), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, world: World) -> Tensor:
        ctx.world = world
        return world.sum(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.world.sum(grads[0]), None


@dataclass(frozen=True, eq=False, kw_only=True)
class PartedGraph(CSRGraph):
    r"""Whole rows of :math:`A` and of :math:`A^T`, those of the nodes that this process holds.

    The columns of its patterns are these nodes and, after them, the halo: their neighbours in other processes. Layers
    that ask the graph for halo rows and for sums over all nodes compute on it just what they compute on the whole
    graph.

    Attributes:
        halo: The neighbours in other processes, and how their rows are had.
        own: The nodes of the whole graph that are here, ascending.
        own_entries: The entries of the whole graph that are here.
        pattern_t: The rows of the transpose.
        normalization: Which normalisation :attr:`weights` have.
        weights: The values of :math:`\bar{A}` at the entries of ``pattern``, in both orders.
        weights_t: Those of :math:`\bar{A}^T` at the entries of :attr:`pattern_t`.
    """

    halo: Halo
    own: Tensor
    own_entries: Tensor
    pattern_t: CSRPattern
    normalization: str
    weights: Weights
    weights_t: Weights

    @classmethod
    def of(
        cls, graph: CSRGraph, owner: Tensor, world: World, *, normalization: str = "row", dtype: torch.dtype
    ) -> "PartedGraph":
        """Take the part of one process out of a graph.

        Args:
            graph: The whole graph, on the CPU.
            owner: The process that holds each node.
            world: The processes.
            normalization: The normalisation that layers will ask for.
            dtype: The dtype of their features.
        """
        row, col = graph.pattern.rows(), graph.pattern.col.long()
        halo = Halo.of(row, col, owner, world)
        own = (owner == world.rank).nonzero().flatten()
        place = torch.full((graph.num_nodes,), -1)
        place[torch.cat([own, halo.nodes])] = torch.arange(own.numel() + halo.nodes.numel())
        values = graph.transition(normalization, torch.float64)[0]
        pattern, entries = _rows_of(row, col, owner == world.rank, place, own.numel(), halo)
        pattern_t, entries_t = _rows_of(col, row, owner == world.rank, place, own.numel(), halo)
        none = torch.empty(0, dtype=torch.long)
        return cls(
            pattern=pattern,
            adjacency=graph.adjacency[entries],
            edge_index=none.expand(2, 0),
            entry=none,
            num_given=0,
            has_added_loops=graph.has_added_loops,
            halo=halo,
            own=own,
            own_entries=entries,
            pattern_t=pattern_t,
            normalization=normalization,
            weights=_in_both_orders(pattern, values[entries].to(dtype)),
            weights_t=_in_both_orders(pattern_t, values[entries_t].to(dtype)),
        )

    @property
    def is_whole(self) -> bool:
        """Not as far as operators know that work on whole graphs, even in a world of one."""
        return False

    @property
    def global_nodes(self) -> Tensor:
        """Which nodes of the whole graph these are."""
        return self.own

    @property
    def global_entries(self) -> Tensor:
        """Which entries of the whole graph these are."""
        return self.own_entries

    def gather_halo(self, x: Tensor) -> Tensor:
        """Rows of the nodes here, and after them those of the halo, which other processes send."""
        return self.halo.gather(x)

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum over the processes."""
        return self.halo.all_reduce(x)

    def propagate(self, x: Tensor, normalization: str, *, transpose: bool = False) -> Tensor:
        """See :meth:`CSRGraph.propagate`."""
        if normalization != self.normalization:
            raise ValueError(f"the graph was parted for normalization={self.normalization!r}, not {normalization!r}")
        if transpose:
            return spmm(self.pattern_t, self.weights_t, x)
        return spmm(self.pattern, self.weights, x)

    def transition(self, normalization: str, dtype: torch.dtype) -> Weights:
        """Refused: who asks for the matrix itself would need rows that other processes hold.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            'A graph that is parted among processes takes support="full" only, since S on the edges would need the '
            "neighbours of neighbours. Use --support full, or --parallel data."
        )

    def to(self, device: torch.device | str) -> "PartedGraph":
        """The same part on another device."""
        return replace(
            self,
            pattern=self.pattern.to(device),
            adjacency=self.adjacency.to(device),
            edge_index=self.edge_index.to(device),
            entry=self.entry.to(device),
            halo=self.halo.to(device),
            own=self.own.to(device),
            own_entries=self.own_entries.to(device),
            pattern_t=self.pattern_t.to(device),
            weights=(self.weights[0].to(device), self.weights[1].to(device)),
            weights_t=(self.weights_t[0].to(device), self.weights_t[1].to(device)),
        )


def _rows_of(
    row: Tensor, col: Tensor, is_own: Tensor, place: Tensor, num_own: int, halo: Halo
) -> tuple[CSRPattern, Tensor]:
    """The rows that are ours, in our numbering, and the entries of the whole matrix that are in them."""
    entries = is_own[row].nonzero().flatten()
    ours, theirs = place[row[entries]], place[col[entries]]
    width = num_own + halo.nodes.numel()
    order = torch.argsort(ours * width + theirs)
    return CSRPattern.from_sorted(ours[order], theirs[order], num_own, width), entries[order]


def _in_both_orders(pattern: CSRPattern, values: Tensor) -> Weights:
    return values, values[pattern.perm_t.long()]
