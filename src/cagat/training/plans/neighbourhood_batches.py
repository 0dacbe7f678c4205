"""Batches of training nodes with their neighbourhoods."""

from typing import Any

import torch
from torch import Tensor

from cagat.models import Labelled
from cagat.training.plans.batch import Batch, rows_of, seed_of


class NeighbourhoodBatches:
    """Subgraphs of all nodes within some hops of a few training nodes, the seeds, whose loss is taken.

    If there are as many hops as the model looks far (:meth:`~cagat.models.NodeClassifier.reach`), the logits of the
    seeds are those of the whole graph.

    Args:
        inputs: What the model takes of the whole graph.
        train: The training nodes and their classes.
        hops: How far neighbourhoods reach, along edges in either direction.
        seeds_per_batch: The number of seeds in a batch.
        seed: Of the order.
    """

    def __init__(self, inputs: tuple[Any, ...], train: Labelled, hops: int, seeds_per_batch: int, seed: int) -> None:
        self._x, self._edge_index, self._weight = inputs
        self._train, self._hops, self._seeds_per_batch, self._seed = train, hops, seeds_per_batch, seed

    def of_epoch(self, epoch: int, rank: int = 0, size: int = 1) -> list[tuple[int, Tensor]]:
        """The seeds of each batch of an epoch, as positions among the training nodes."""
        random = torch.Generator().manual_seed(seed_of(self._seed, epoch))
        order = torch.randperm(self._train.nodes.numel(), generator=random)
        return list(enumerate(torch.split(order, self._seeds_per_batch)))[rank::size]

    def make(self, number: int, chosen: Tensor) -> Batch:
        """The subgraph around some seeds."""
        seeds, classes = self._train.nodes[chosen], self._train.classes[chosen]
        num_nodes = int(self._x.shape[0])
        is_near = neighbourhood(self._edge_index, num_nodes, seeds, self._hops)
        nodes = is_near.nonzero().flatten()
        source, target = self._edge_index
        kept = is_near[source] & is_near[target]
        place = torch.cumsum(is_near, 0) - 1
        weight = None if self._weight is None else self._weight[kept]
        inputs = (rows_of(self._x, nodes), place[self._edge_index[:, kept]], weight)
        return Batch(number, inputs, Labelled(place[seeds], classes))


def neighbourhood(edge_index: Tensor, num_nodes: int, seeds: Tensor, hops: int) -> Tensor:
    """Whether each node is within some hops of any seed, along edges in either direction."""
    source, target = edge_index
    is_near = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device)
    is_near[seeds] = True
    size = int(is_near.sum())
    for _ in range(hops):
        nearer = is_near.clone()
        nearer[target[is_near[source]]] = True
        nearer[source[is_near[target]]] = True
        is_near, before, size = nearer, size, int(nearer.sum())
        if size == before:
            break
    return is_near
