"""Epochs in batches: subgraphs of clusters, or of the neighbourhoods of training nodes."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader

from cagat.distributed import metis_parts
from cagat.models import Labelled, NodeClassifier
from cagat.nn import SparseFeatures
from cagat.training.epoch_plan import EpochPlan


class Batch(NamedTuple):
    """What the model takes of an induced subgraph, and the nodes whose loss is taken, as the subgraph numbers them."""

    inputs: tuple[Any, ...]
    train: Labelled


class Batches(ABC):
    """The batches of any epoch, a pure function of its number."""

    def __init__(self, inputs: tuple[Any, ...], train: Labelled, seed: int) -> None:
        self._x, self._edge_index, self._weight = inputs
        self._num_nodes = int(self._x.shape[0])
        self._train, self.seed = train, seed

    @abstractmethod
    def of_epoch(self, epoch: int) -> list[Any]:
        """What each batch of an epoch is made of."""

    @abstractmethod
    def make(self, chosen: Any) -> Batch:
        """Make a batch."""

    def _shuffled(self, count: int, epoch: int) -> Tensor:
        return torch.randperm(count, generator=torch.Generator().manual_seed(_seed_of(self.seed, epoch)))

    def _features(self, nodes: Tensor) -> Tensor | SparseFeatures:
        return self._x.rows(nodes) if isinstance(self._x, SparseFeatures) else self._x[nodes]


class _Clusters(ClusterData):  # type: ignore[misc]
    """PyG's clusters, cut by pymetis, of which the package index has wheels, instead of PyG's own extensions."""

    def _metis(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        return metis_parts(edge_index, num_nodes, self.num_parts)


class ClusterBatches(Batches):
    """Subgraphs that several clusters of a graph induce, in each epoch other clusters together.

    After `"Cluster-GCN" <https://arxiv.org/abs/1905.07953>`_: the clusters are METIS's, so that few edges are lost, and
    the edges between the clusters of a batch are kept. A batch without training nodes is left out.
    """

    def __init__(
        self, inputs: tuple[Any, ...], train: Labelled, clusters: int, clusters_per_batch: int, seed: int
    ) -> None:
        super().__init__(inputs, train, seed)
        self._clusters_per_batch = clusters_per_batch
        # PyG's loader moves numbers only; features, sparse or not, follow them.
        numbered = Data(
            edge_index=self._edge_index.cpu(),
            num_nodes=self._num_nodes,
            node_number=torch.arange(self._num_nodes),
            edge_number=torch.arange(self._edge_index.size(1)),
        )
        self._clusters = _Clusters(numbered, clusters, log=False)
        start, node = self._clusters.partition.partptr, self._clusters.partition.node_perm
        is_labelled = torch.zeros(self._num_nodes, dtype=torch.bool)
        is_labelled[train.nodes.cpu()] = True
        self._has_labels = [bool(is_labelled[node[start[i] : start[i + 1]]].any()) for i in range(clusters)]

    def of_epoch(self, epoch: int) -> list[list[int]]:
        """The clusters of each batch of an epoch."""
        order = self._shuffled(len(self._clusters), epoch)
        batches: list[list[int]] = [batch.tolist() for batch in torch.split(order, self._clusters_per_batch)]
        return [batch for batch in batches if any(self._has_labels[cluster] for cluster in batch)]

    def make(self, chosen: list[int]) -> Batch:
        """The subgraph of some clusters."""
        data = self._subgraph(chosen)
        device = self._edge_index.device
        nodes = data.node_number.to(device)
        weight = None if self._weight is None else self._weight[data.edge_number.to(device)]
        row = torch.full((self._num_nodes,), -1, device=device)
        row[nodes] = torch.arange(nodes.numel(), device=device)
        rows = row[self._train.nodes]
        train = Labelled(rows[rows >= 0], self._train.classes[rows >= 0])
        return Batch((self._features(nodes), data.edge_index.to(device), weight), train)

    def _subgraph(self, chosen: list[int]) -> Data:
        partition = self._clusters.partition
        rows = [slice(int(partition.partptr[one]), int(partition.partptr[one + 1])) for one in chosen]
        if all(partition.indptr[span.start] == partition.indptr[span.stop] for span in rows):
            # PyG's loader stumbles over clusters in which no edge begins.
            none = torch.empty(2, 0, dtype=torch.long)
            nodes = torch.cat([partition.node_perm[span] for span in rows])
            return Data(edge_index=none, node_number=nodes, edge_number=none[0])
        (data,) = ClusterLoader(self._clusters, batch_sampler=[chosen], generator=torch.Generator())
        return data


class NeighbourhoodBatches(Batches):
    """Subgraphs of all nodes within some hops of a few training nodes, the seeds, whose loss is taken.

    If there are as many hops as the model looks far (:meth:`~cagat.models.NodeClassifier.reach`), the logits of the
    seeds are those of the whole graph.
    """

    def __init__(self, inputs: tuple[Any, ...], train: Labelled, hops: int, seeds_per_batch: int, seed: int) -> None:
        super().__init__(inputs, train, seed)
        self._hops, self._seeds_per_batch = hops, seeds_per_batch

    def of_epoch(self, epoch: int) -> list[Tensor]:
        """The seeds of each batch of an epoch, as positions among the training nodes."""
        return list(torch.split(self._shuffled(self._train.nodes.numel(), epoch), self._seeds_per_batch))

    def make(self, chosen: Tensor) -> Batch:
        """The subgraph around some seeds."""
        seeds, classes = self._train.nodes[chosen], self._train.classes[chosen]
        is_near = neighbourhood(self._edge_index, self._num_nodes, seeds, self._hops)
        source, target = self._edge_index
        kept = is_near[source] & is_near[target]
        row = torch.cumsum(is_near, 0) - 1
        weight = None if self._weight is None else self._weight[kept]
        inputs = (self._features(is_near.nonzero().flatten()), row[self._edge_index[:, kept]], weight)
        return Batch(inputs, Labelled(row[seeds], classes))


def neighbourhood(edge_index: Tensor, num_nodes: int, seeds: Tensor, hops: int) -> Tensor:
    """Whether each node is within some hops of any seed, along edges in either direction."""
    source, target = edge_index
    is_near = torch.zeros(num_nodes, dtype=torch.bool, device=edge_index.device)
    is_near[seeds] = True
    for _ in range(hops):
        nearer = is_near.clone()
        nearer[target[is_near[source]]] = True
        nearer[source[is_near[target]]] = True
        if torch.equal(nearer, is_near):
            break
        is_near = nearer
    return is_near


class MiniBatches(EpochPlan):
    """An epoch takes a step on each of some subgraphs; validation sees the whole graph.

    Batches and dropout are functions of the seed, the epoch and the number of the batch, so that a run can be resumed
    to the bit.
    """

    def __init__(
        self, model: NodeClassifier, inputs: tuple[Any, ...], train: Labelled, val: Labelled, batches: Batches
    ) -> None:
        super().__init__(model, inputs, train, val)
        self._batches = batches

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The loss of each batch."""
        return self._losses(self.model, epoch)

    def _losses(self, network: torch.nn.Module, epoch: int, rank: int = 0, size: int = 1) -> Iterator[Tensor]:
        """The loss of every ``size``-th batch: the share of one of several processes."""
        for number, chosen in list(enumerate(self._batches.of_epoch(epoch)))[rank::size]:
            inputs, train = self._batches.make(chosen)
            torch.manual_seed(_seed_of(self._batches.seed, epoch, number))
            yield F.cross_entropy(network(*inputs)[train.nodes], train.classes)


def _seed_of(*numbers: int) -> int:
    """A seed for a run, an epoch and a batch, the same in every process."""
    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
