"""Rows of nodes that neighbours in other processes need."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.distributed.world import World


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

    def around(self, x: Tensor) -> Tensor:
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
