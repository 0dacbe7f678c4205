"""The order in which compiled passes go over a part, and their exchanges with the other processes."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from cagat.distributed.world import World
from cagat.kernels import CSRPattern
from cagat.kernels.csr_pattern import LocalOrder, reverse_cuthill_mckee
from cagat.kernels.exchange import Exchange

if TYPE_CHECKING:
    from cagat.distributed.parted_graph import Halo

Weights = tuple[Tensor, Tensor]


@dataclass
class Neighbour:
    """Another process with which ours exchanges rows and values.

    Attributes:
        rank: Which one.
        sent: Those of our rows that it needs, as a slice if they stand side by side.
        arriving: Where its rows are in our halo.
        ours: Our entries that stand in its columns.
        theirs: Where the values of its entries are that stand in our columns.
    """

    rank: int
    sent: Tensor | slice
    arriving: slice
    ours: Tensor
    theirs: slice


class Arriving:
    """Tensors under way between two processes."""

    def __init__(self, works: list[dist.Work], kept: Tensor, buffer: Tensor, target: Tensor | None) -> None:
        self._works, self._kept, self._buffer, self._target = works, kept, buffer, target

    def wait(self) -> Tensor:
        """What has arrived, where it belongs if that is known."""
        for work in self._works:
            work.wait()
        return self._buffer if self._target is None else self._target.copy_(self._buffer)


@dataclass
class PartExchange(Exchange):
    """See :class:`Exchange`; numbers are sent as they are, or in another dtype."""

    world: World
    neighbours: list[Neighbour]
    halo: int
    outer: int
    values: int
    positions: Tensor
    dtype: torch.dtype | None = None
    _under_way: list[Arriving] = field(default_factory=list, init=False)

    def send(self, rows: Tensor) -> None:
        """See :meth:`Exchange.send`."""
        own = rows.size(1) - self.halo
        for one in self.neighbours:
            picked = rows[:, one.sent] if isinstance(one.sent, slice) else rows.index_select(1, one.sent)
            target = rows[:, own + one.arriving.start : own + one.arriving.stop]
            self._under_way.append(self._swap(one.rank, picked, target))

    def wait(self) -> None:
        """See :meth:`Exchange.wait`."""
        under_way, self._under_way = self._under_way, []
        for one in under_way:
            one.wait()

    def exchange_values(self, values: Tensor, *, back: bool) -> None:
        """See :meth:`Exchange.exchange_values`."""
        own = values.size(0) - self.values
        under_way = []
        for one in self.neighbours:
            theirs = values[own + one.theirs.start : own + one.theirs.stop]
            if back:
                under_way.append(self._swap(one.rank, theirs, values.new_empty(one.ours.numel(), values.size(1))))
            else:
                under_way.append(self._swap(one.rank, values.index_select(0, one.ours), theirs))
        for one, arriving in zip(self.neighbours, under_way, strict=True):
            arrived = arriving.wait()
            if back:
                values.index_copy_(0, one.ours, arrived)

    def _swap(self, rank: int, sent: Tensor, target: Tensor) -> Arriving:
        dtype = self.dtype or target.dtype
        sent = sent.to(dtype).contiguous()
        is_there = target.is_contiguous() and target.dtype == dtype
        buffer = target if is_there else torch.empty(target.shape, dtype=dtype)
        return Arriving(self.world.swap(rank, sent, buffer), sent, buffer, None if buffer is target else target)


def local_part(
    pattern: CSRPattern, pattern_t: CSRPattern, weights: Weights, halo: "Halo", global_entries: Tensor
) -> tuple[LocalOrder, Weights]:
    """The order in which compiled passes go over a part, and the values of Abar in this order.

    Nodes that other processes need come first, and both these and the others are in the order of reverse
    Cuthill-McKee. The halo has the order that the processes who hold it have.

    Args:
        pattern: The rows that are ours.
        pattern_t: The rows of the transpose that are ours.
        weights: The values of Abar at the entries of both.
        halo: Which rows go where.
        global_entries: Which entry of the whole graph each of ours is.
    """
    world, num_nodes, others = halo.world, pattern.num_rows, halo.nodes.numel()
    width, ranks = num_nodes + others, torch.arange(halo.world.size)
    row, col, row_t, col_t = pattern.rows(), pattern.col.long(), pattern_t.rows(), pattern_t.col.long()
    inside = col < num_nodes
    near = reverse_cuthill_mckee(CSRPattern.from_sorted(row[inside], col[inside], num_nodes, num_nodes))
    is_inner = torch.ones(num_nodes, dtype=torch.uint8)
    is_inner[halo.rows] = 0
    nodes = near[torch.argsort(is_inner[near], stable=True)]
    nodes_back = torch.argsort(nodes)

    # Every process says in which order its rows come.
    receiver, sender = (
        ranks.repeat_interleave(torch.tensor(halo.sent)),
        ranks.repeat_interleave(torch.tensor(halo.received)),
    )
    sent = nodes_back[halo.rows]
    order = torch.argsort(receiver * num_nodes + sent)
    starts, starts_there = (torch.tensor([0, *counts[:-1]]).cumsum(0) for counts in (halo.sent, halo.received))
    if world.size > 1:
        arrived = world.exchange(order - starts[receiver], halo.sent, halo.received) + starts_there[sender]
    else:
        arrived = torch.empty(0, dtype=torch.long)
    number = torch.cat([nodes_back, num_nodes + torch.argsort(arrived)])

    key, key_t = number[row] * width + number[col], number[row_t] * width + number[col_t]
    entries, entries_t = torch.argsort(key), torch.argsort(key_t)
    ours = CSRPattern.from_sorted(number[row][entries], number[col][entries], num_nodes, width)
    mirrored = CSRPattern.from_sorted(number[row_t][entries_t], number[col_t][entries_t], num_nodes, width)
    if torch.equal(ours.rowptr, mirrored.rowptr) and torch.equal(ours.col, mirrored.col):
        mirrored = ours

    # Values at entries between two processes go in the order of the entries' rows, then columns, in the whole graph.
    out, into = (~inside).nonzero().flatten(), (col_t >= num_nodes).nonzero().flatten()
    to, come = sender[col[out] - num_nodes], torch.argsort((col_t[into] - num_nodes) * num_nodes + row_t[into])
    leaving = torch.argsort(entries)[out[torch.argsort(to * row.numel() + out)]]
    position_t = torch.empty_like(key_t)
    position_t[into[come]] = row.numel() + torch.arange(into.numel())
    within = col_t < num_nodes
    mirror = number[col_t[within]] * width + number[row_t[within]]
    position_t[within] = torch.searchsorted(key[entries], mirror)

    leaves = torch.bincount(to, minlength=world.size).tolist()
    comes = torch.bincount(sender[col_t[into] - num_nodes], minlength=world.size).tolist()
    spans = [_spans(counts) for counts in (halo.sent, halo.received, leaves, comes)]
    neighbours = [
        Neighbour(rank, _sliced(sent[order][given]), taken, leaving[away], back)
        for rank, (given, taken, away, back) in enumerate(zip(*spans, strict=True))
        if halo.sent[rank] + halo.received[rank] + leaves[rank] + comes[rank] > 0
    ]
    exchange = PartExchange(
        world, neighbours, others, int((is_inner == 0).sum()), into.numel(),
        torch.cat([global_entries[entries], torch.zeros(into.numel(), dtype=torch.long)]), halo.dtype,
    )  # fmt: skip
    index = ours.col.dtype
    joined = CSRPattern(ours.rowptr, ours.col, mirrored.rowptr, mirrored.col, position_t[entries_t].to(index))
    local = LocalOrder(joined, nodes.to(index), nodes_back, entries.to(index), exchange)
    return local, (weights[0][entries], weights[1][entries_t])


def _spans(counts: list[int]) -> list[slice]:
    ends = torch.tensor([0, *counts]).cumsum(0).tolist()
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _sliced(rows: Tensor) -> Tensor | slice:
    """The same rows, as a slice if they stand side by side."""
    if rows.numel() and int(rows[-1] - rows[0]) + 1 == rows.numel():  # They ascend.
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
