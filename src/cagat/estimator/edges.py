"""Edges as the models take them."""

from typing import NamedTuple

import torch
from torch import Tensor


class Edges(NamedTuple):
    """Sources and targets, shape (2, edges), and for each edge its weight, unless all are 1."""

    edge_index: Tensor
    weight: Tensor | None = None

    def joined_to(self, neighbours: Tensor, num_nodes: int) -> "Edges":
        """The edges after new nodes were joined to known ones in such a way that nothing known changes.

        Every new node gets an edge from each of its neighbours, of weight 0. Such an edge is in G, so that the new
        node attends to its neighbours, but not in Abar, along which attention is diffused (Eq. 15). Therefore no
        known node and no other new node attends to it, and what comes out for it depends on nothing but itself and
        what was known. (Edges of weight 1 would not do: by `Abar S Abar^T` all nodes near its neighbours would attend
        to it.)

        Args:
            neighbours: The numbers of the known nodes that each new node is joined to, shape (new nodes, neighbours).
            num_nodes: How many nodes are known.
        """
        new = num_nodes + torch.arange(neighbours.size(0)).repeat_interleave(neighbours.size(1))
        weight = torch.ones(self.edge_index.size(1)) if self.weight is None else self.weight
        return Edges(
            torch.cat([self.edge_index, torch.stack([neighbours.reshape(-1), new])], dim=1),
            torch.cat([weight, torch.zeros(new.numel())]),
        )
