"""Batches of several parts of a graph, after Cluster-GCN."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader

from cagat.distributed import metis_parts
from cagat.models import Labelled
from cagat.training.plans.batch import Batch, rows_of, seed_of, within


class _Parts(ClusterData):  # type: ignore[misc]
    """PyG's parts, cut by pymetis, of which the package index has wheels, instead of PyG's own extensions."""

    def _metis(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        return metis_parts(edge_index, num_nodes, self.num_parts)


class ClusterBatches:
    """Subgraphs that several parts of a graph induce, in each epoch other parts together.

    After `"Cluster-GCN" <https://arxiv.org/abs/1905.07953>`_: the parts are METIS's, so that few edges are lost, and
    the edges between the parts of a batch are kept. A batch without training nodes is left out.

    Args:
        inputs: What the model takes of the whole graph.
        train: The training nodes and their classes.
        parts: The number of parts.
        parts_per_batch: How many of them make a batch.
        seed: Of the order.
    """

    def __init__(self, inputs: tuple[Any, ...], train: Labelled, parts: int, parts_per_batch: int, seed: int) -> None:
        self._x, edge_index, self._weight = inputs
        self._train, self._parts_per_batch, self._seed = train, parts_per_batch, seed
        self._device = edge_index.device
        num_nodes = int(self._x.shape[0])
        # The loader moves numbers only; features, sparse or not, follow them.
        numbered = Data(
            edge_index=edge_index.cpu(),
            num_nodes=num_nodes,
            node_number=torch.arange(num_nodes),
            edge_number=torch.arange(edge_index.size(1)),
        )
        self._clusters = _Parts(numbered, parts, log=False)
        start, node = self._clusters.partition.partptr, self._clusters.partition.node_perm
        is_labelled = torch.zeros(num_nodes, dtype=torch.bool)
        is_labelled[train.nodes.cpu()] = True
        self._has_labels = [bool(is_labelled[node[start[i] : start[i + 1]]].any()) for i in range(parts)]

    def of_epoch(self, epoch: int, rank: int = 0, size: int = 1) -> list[tuple[int, list[int]]]:
        """The parts of each batch of an epoch; of several processes, each takes every so manieth."""
        random = torch.Generator().manual_seed(seed_of(self._seed, epoch))
        order = torch.randperm(len(self._clusters), generator=random)
        chosen = [batch.tolist() for batch in torch.split(order, self._parts_per_batch)]
        useful = [batch for batch in chosen if any(self._has_labels[part] for part in batch)]
        return list(enumerate(useful))[rank::size]

    def make(self, number: int, chosen: list[int]) -> Batch:
        """The subgraph of some parts."""
        data = self._subgraph(chosen)
        nodes = data.node_number.to(self._device)
        weight = None if self._weight is None else self._weight[data.edge_number.to(self._device)]
        inputs = (rows_of(self._x, nodes), data.edge_index.to(self._device), weight)
        return Batch(number, inputs, within(nodes, self._train, int(self._x.shape[0])))

    def _subgraph(self, chosen: list[int]) -> Data:
        partition = self._clusters.partition
        rows = [slice(int(partition.partptr[part]), int(partition.partptr[part + 1])) for part in chosen]
        if all(partition.indptr[span.start] == partition.indptr[span.stop] for span in rows):
            # PyG's loader stumbles over parts in which no edge begins.
            none = torch.empty(2, 0, dtype=torch.long)
            nodes = torch.cat([partition.node_perm[span] for span in rows])
            return Data(edge_index=none, node_number=nodes, edge_number=none[0])
        loader = ClusterLoader(self._clusters, batch_sampler=[chosen], generator=torch.Generator())
        (data,) = loader
        return data
