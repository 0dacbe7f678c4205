"""The part of a graph that one process holds, and the rows that it exchanges with the others."""

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.distributed.local_part import Weights, local_part
from cagat.distributed.world import World
from cagat.errors import ConfigError
from cagat.kernels import CSRGraph, CSRPattern, spmm
from cagat.kernels.csr_pattern import LocalOrder


class Halo(NamedTuple):
    """Which rows go where, found once for a partition.

    Attributes:
        world: The processes.
        nodes: The nodes of other processes that neighbour ours, by process, then by number.
        received: How many of them each process holds.
        rows: Which of our rows are sent, by the process that gets them, then by number.
        sent: How many of them each process gets.
        dtype: What numbers are sent as, if not as they are.
    """

    world: World
    nodes: Tensor
    received: list[int]
    rows: Tensor
    sent: list[int]
    dtype: torch.dtype | None = None

    @classmethod
    def of(cls, row: Tensor, col: Tensor, owner: Tensor, world: World) -> "Halo":
        """Find the halo of one process from the entries of the whole matrix and the process that owns each node."""
        num_nodes = owner.numel()
        apart = owner[row] != owner[col]
        row, col = row[apart], col[apart]
        # The rows of A need their columns, and those of its transpose the other way round.
        needing, node = torch.cat([owner[row], owner[col]]), torch.cat([col, row])
        for_us, from_us = needing == world.rank, owner[node] == world.rank
        received = torch.unique(owner[node[for_us]] * num_nodes + node[for_us])
        sent = torch.unique(needing[from_us] * num_nodes + node[from_us])
        counts = [torch.bincount(key // num_nodes, minlength=world.size).tolist() for key in (received, sent)]
        own = (owner == world.rank).nonzero().flatten()
        return cls(world, received % num_nodes, counts[0], torch.searchsorted(own, sent % num_nodes), counts[1])

    def exchange(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """As :meth:`World.exchange`, in the dtype in which numbers are sent."""
        return self.world.exchange(rows.to(self.dtype or rows.dtype), sent, received).to(rows.dtype)

    def to(self, device: torch.device | str) -> "Halo":
        """The same with its indices on another device."""
        return self._replace(nodes=self.nodes.to(device), rows=self.rows.to(device))


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, halo: Halo) -> Tensor:
        ctx.halo = halo
        return torch.cat([x, halo.exchange(x[halo.rows], halo.sent, halo.received)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        halo: Halo = ctx.halo
        own, theirs = grads[0].tensor_split([grads[0].size(0) - halo.nodes.numel()])
        return own.index_add(0, halo.rows, halo.exchange(theirs, halo.received, halo.sent)), None


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
    compute on it just what they compute on the whole graph.

    Attributes:
        own: The nodes of the whole graph that are here, ascending.
        own_entries: The entries of the whole graph that are here.
        pattern_t: The rows of the transpose.
        weights: The values of :math:`\bar{A}` at the entries of ``pattern``, in both orders.
        weights_t: Those of :math:`\bar{A}^T` at the entries of :attr:`pattern_t`.
        row_sums: Those of A, of our nodes and then of those of the halo.
    """

    halo: Halo
    own: Tensor
    own_entries: Tensor
    pattern_t: CSRPattern
    normalization: str
    weights: Weights
    weights_t: Weights
    row_sums: Tensor

    @classmethod
    def of(
        cls,
        graph: CSRGraph,
        owner: Tensor,
        world: World,
        *,
        normalization: str = "row",
        dtype: torch.dtype,
    ) -> "PartedGraph":
        """Take the part of one process out of a whole graph on the CPU; ``owner`` is the process of each node."""
        row, col = graph.pattern.rows(), graph.pattern.col.long()
        halo = Halo.of(row, col, owner, world)
        own = (owner == world.rank).nonzero().flatten()
        values = graph.transition(normalization, torch.float64)[0]
        pattern, entries = _own_rows(row, col, own, halo.nodes, graph.num_nodes)
        pattern_t, entries_t = _own_rows(col, row, own, halo.nodes, graph.num_nodes)
        here, here_t = values[entries].to(dtype), values[entries_t].to(dtype)
        return cls(
            pattern=pattern,
            adjacency=graph.adjacency[entries],
            entry=torch.empty(0, dtype=torch.long),
            num_given=0,
            has_added_loops=graph.has_added_loops,
            halo=halo,
            own=own,
            own_entries=entries,
            pattern_t=pattern_t,
            normalization=normalization,
            weights=(here, here[pattern.perm_t.long()]),
            weights_t=(here_t, here_t[pattern_t.perm_t.long()]),
            row_sums=graph.degrees()[torch.cat([own, halo.nodes])],
        )

    @property
    def is_whole(self) -> bool:
        """Not as far as operators know that work on whole graphs, even in a world of one."""
        return False

    @property
    def runs_passes(self) -> bool:
        """See :attr:`CSRGraph.runs_passes`."""
        return self.halo.world.meets_in_passes

    @property
    def global_nodes(self) -> Tensor:
        """Which nodes of the whole graph these are."""
        return self.own

    @property
    def global_entries(self) -> Tensor:
        """Which entries of the whole graph these are."""
        return self.own_entries

    def gather_halo(self, x: Tensor) -> Tensor:
        """Our rows, and after them those of the halo; gradients go back to the processes that hold these."""
        if self.halo.world.size == 1:
            return x
        extended: Tensor = _Exchange.apply(x, self.halo)  # type: ignore[no-untyped-call]
        return extended

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum over the processes; gradients are summed likewise."""
        if self.halo.world.size == 1:
            return x
        total: Tensor = _Sum.apply(x, self.halo.world)  # type: ignore[no-untyped-call]
        return total

    def propagate(self, x: Tensor, normalization: str, *, transpose: bool = False) -> Tensor:
        """See :meth:`CSRGraph.propagate`."""
        self._require(normalization)
        pattern, weights = (self.pattern_t, self.weights_t) if transpose else (self.pattern, self.weights)
        return spmm(pattern, weights, x)

    def transition(self, normalization: str, dtype: torch.dtype) -> Weights:
        """Refused: who asks for the matrix itself would need rows that other processes hold."""
        raise ConfigError(
            'A graph that is parted among processes takes support="full" only, since S on the edges would need the '
            "neighbours of neighbours. Use --support full, or --parallel data."
        )

    def degrees(self) -> Tensor:
        """See :meth:`CSRGraph.degrees`."""
        return self.row_sums

    def local_order(self) -> LocalOrder:
        """See :meth:`CSRGraph.local_order`; the first call, of which each process makes one, is an exchange."""
        return self._local_part()[0]

    def local_transition(self, normalization: str, dtype: torch.dtype) -> Weights:
        """See :meth:`CSRGraph.local_transition`."""
        self._require(normalization)
        return self._local_part()[1]

    def cut_entries(self) -> tuple[int, int]:
        """How many of our entries stand in the columns of others, and how many of theirs in ours."""
        num_nodes = self.num_nodes
        return int((self.pattern.col >= num_nodes).sum()), int((self.pattern_t.col >= num_nodes).sum())

    def _local_part(self) -> tuple[LocalOrder, Weights]:
        def make() -> tuple[LocalOrder, Weights]:
            weights = self.weights[0], self.weights_t[0]
            return local_part(self.pattern, self.pattern_t, weights, self.halo, self.own_entries)

        part: tuple[LocalOrder, Weights] = self._prepared.get("local part", make)
        return part

    def _require(self, normalization: str) -> None:
        if normalization != self.normalization:
            raise ValueError(f"the graph was parted for normalization={self.normalization!r}, not {normalization!r}")

    def to(self, device: torch.device | str) -> "PartedGraph":
        """The same part on another device."""
        moved = {one.name: _moved(getattr(self, one.name), device) for one in fields(self) if one.init}
        return replace(self, **moved)


def _moved(value: Any, device: torch.device | str) -> Any:
    if hasattr(value, "to"):
        return value.to(device)
    return tuple(_moved(one, device) for one in value) if isinstance(value, tuple) else value


def _own_rows(row: Tensor, col: Tensor, own: Tensor, halo: Tensor, num_nodes: int) -> tuple[CSRPattern, Tensor]:
    """The rows that are ours, with local numbers, and the entries of the whole matrix that are in them."""
    width = own.numel() + halo.numel()
    local = torch.full((num_nodes,), width)
    local[torch.cat([own, halo])] = torch.arange(width)
    entries = (local[row] < own.numel()).nonzero().flatten()
    ours, theirs = local[row[entries]], local[col[entries]]
    order = torch.argsort(ours * width + theirs)
    return CSRPattern.from_sorted(ours[order], theirs[order], own.numel(), width), entries[order]
