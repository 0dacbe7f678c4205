"""Epochs in batches, which processes may share: subgraphs of clusters, or of the neighbourhoods of training nodes."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from cagat.distributed import World, metis_parts
from cagat.models import Labelled, NodeClassifier
from cagat.nn import SparseFeatures
from cagat.training.objective import Objective, Sampled
from cagat.training.trainer import EpochPlan, Validation


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

    def _induced(self, nodes: Tensor, edges: Tensor, train: Labelled) -> Batch:
        """The subgraph of some nodes; ``edges`` are those that begin in it, ``train`` may have nodes outside."""
        row = torch.full((self._num_nodes,), -1, device=nodes.device)
        row[nodes] = torch.arange(nodes.numel(), device=nodes.device)
        ends, rows = row[self._edge_index[:, edges]], row[train.nodes]
        kept = ends[1] >= 0
        weight = None if self._weight is None else self._weight[edges[kept]]
        x = self._x.rows(nodes) if isinstance(self._x, SparseFeatures) else self._x[nodes]
        return Batch((x, ends[:, kept], weight), train._replace(nodes=rows).some(rows >= 0))


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
        source, target = self._edge_index
        cluster = metis_parts(self._edge_index, self._num_nodes, clusters).to(source.device)
        nodes = torch.argsort(cluster)  # Within a cluster any order will do; PyG's ClusterData has this one.
        position = torch.argsort(nodes)
        edges = torch.argsort(position[source] * self._num_nodes + position[target], stable=True)
        # The nodes of each cluster, and the edges that begin in it.
        self._nodes = torch.split(nodes, torch.bincount(cluster, minlength=clusters).tolist())
        self._edges = torch.split(edges, torch.bincount(cluster[source], minlength=clusters).tolist())
        self._labelled = set(cluster[train.nodes].tolist())

    def of_epoch(self, epoch: int) -> list[list[int]]:
        """The clusters of each batch of an epoch."""
        order = torch.split(self._shuffled(len(self._nodes), epoch), self._clusters_per_batch)
        return [batch for batch in (clusters.tolist() for clusters in order) if self._labelled.intersection(batch)]

    def make(self, chosen: list[int]) -> Batch:
        """The subgraph of some clusters."""
        nodes, edges = (torch.cat([parts[cluster] for cluster in chosen]) for parts in (self._nodes, self._edges))
        return self._induced(nodes, edges, self._train)


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
        seeds = self._train.some(chosen)
        is_near = neighbourhood(self._edge_index, self._num_nodes, seeds.nodes, self._hops)
        edges = is_near[self._edge_index[0]].nonzero().flatten()
        return self._induced(is_near.nonzero().flatten(), edges, seeds)


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
    to the bit. In a world of several processes each has a batch of its own in every step, and the mean of their
    gradients is taken, by torch's DistributedDataParallel. Those that have fewer batches shadow the others in their
    last step (``join()``). The first process validates, for all.
    """

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        batches: Batches,
        world: World | None = None,
        objective: Objective | None = None,
    ) -> None:
        super().__init__(model, inputs, train, val, objective)
        self._batches = batches
        self._world = world or World()
        self._network: torch.nn.Module = Sampled(model, self.objective)
        if self._world.size > 1:
            # With lam=0, for one, attention gets no gradient.
            self._network = DistributedDataParallel(self._network, find_unused_parameters=True)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The losses of this process's batches."""
        network = self._network
        shared = isinstance(network, DistributedDataParallel)
        with network.join(divide_by_initial_world_size=False) if shared else nullcontext():  # type: ignore[operator]
            yield from self._losses(epoch)

    def _losses(self, epoch: int) -> Iterator[Tensor]:
        for number, chosen in list(enumerate(self._batches.of_epoch(epoch)))[self._world.rank :: self._world.size]:
            inputs, train = self._batches.make(chosen)
            torch.manual_seed(_seed_of(self._batches.seed, epoch, number))
            yield self.objective.loss(self._network(*inputs), train.loss, epoch)

    def epoch_loss(self, losses: list[float]) -> float:
        """The mean over the batches of all processes."""
        total, count = self._world.sum(torch.tensor([sum(losses), len(losses)], dtype=torch.float64)).tolist()
        return float(total / count)

    def after_epoch(self, optimizer: torch.optim.Optimizer) -> None:
        """Take over Adam's moments from the first process: it has the most batches, and so has taken all steps."""
        if self._world.size == 1:
            return
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state[parameter]
                if not state:  # A process without any batch so far.
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                for name in ("step", "exp_avg", "exp_avg_sq"):
                    self._world.broadcast(state[name])

    def validate(self) -> Validation:
        """Validate in the first process, for all."""
        return Validation(*self._world.share(super().validate() if self._world.is_first else None))

    def logits(self) -> Tensor | None:
        """The logits of all nodes, in the first process."""
        return super().logits() if self._world.is_first else None


def _seed_of(*numbers: int) -> int:
    """A seed for a run, an epoch and a batch, the same in every process."""
    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
