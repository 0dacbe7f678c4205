"""Epochs over a whole graph whose nodes are shared by several processes, and the bytes that these exchange."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.diffusion import is_fused, is_zero
from cagat.distributed import PartedGraph, Traffic, World, metis_parts
from cagat.errors import ConfigError
from cagat.kernels import CSRGraph
from cagat.kernels.row_layout import row_layout
from cagat.memory import peak_memory
from cagat.models import CaGAT, Labelled, NodeClassifier
from cagat.nn import CaGATConv, SparseFeatures
from cagat.training.objective import Objective
from cagat.training.trainer import EpochPlan, Validation


class GraphParallel(EpochPlan):
    """Every process holds some of the nodes, and all together compute just what one process would.

    Losses, gradients and weights are equal to rounding, dropout included, since its masks depend on the place that a
    node, an edge or a feature has in the whole graph. Products exchange rows of the halo; each step also sums the
    gradients of the weights, which every process has.
    """

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        world: World,
        objective: Objective | None = None,
        halo_dtype: torch.dtype | None = None,
    ) -> None:
        assert isinstance(model, CaGAT)
        self._convs = [conv for conv in model.convs if isinstance(conv, CaGATConv)]
        self._world = world
        self._owner: Tensor | None = None
        x, graph, _ = inputs
        if not isinstance(graph, PartedGraph):  # Else it was cut beforehand, and each process has brought its own.
            x, graph, train, val = self._cut(inputs, train, val)
        self.graph = replace(graph, halo=graph.halo._replace(dtype=halo_dtype))
        if self.graph.runs_passes and self.graph.device.type == "cpu":
            self.graph.local_order()  # Here all processes meet for it.
        super().__init__(model, (x, self.graph, None), train, val, objective)
        weights = torch.ones(train.nodes.numel()) if train.class_weight is None else train.class_weight[train.classes]
        totals = torch.tensor([weights.double().sum(), val.nodes.numel()], dtype=torch.float64)
        self._train_weight, self._num_val = world.sum(totals).tolist()
        self.has_validation = self._num_val > 0
        self.step_traffic: Traffic | None = None
        self.evaluation_traffic = Traffic()
        for parameter in model.parameters():
            world.broadcast(parameter)

    def _cut(
        self, inputs: tuple[Any, ...], train: Labelled, val: Labelled
    ) -> tuple[Any, PartedGraph, Labelled, Labelled]:
        """Cut a graph that all processes have, and take this process's part."""
        x, edge_index, weight = inputs
        world, num_nodes = self._world, int(x.shape[0])
        normalization, dtype = self._convs[0].normalization, self._convs[0].att_src.dtype
        if world.size > num_nodes:
            raise ConfigError(f"{world.size} processes cannot share {num_nodes} nodes. Start fewer.")
        device = edge_index.device
        is_first, none = world.is_first, torch.empty(num_nodes, dtype=torch.long)
        self._owner = metis_parts(edge_index, num_nodes, world.size) if is_first else none
        world.broadcast(self._owner)
        whole = CSRGraph.from_edge_index(
            edge_index.cpu(), num_nodes, None if weight is None else weight.cpu(), normalization=normalization
        )
        graph = PartedGraph.of(whole, self._owner, world, normalization=normalization, dtype=dtype).to(device)
        own = graph.own
        x = x.rows(own, share_dropout=True) if isinstance(x, SparseFeatures) else x[own]
        return x, graph, _here(train, own), _here(val, own)

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """This process's share of the loss."""
        self._before_step = self._world.traffic
        predictions = self.objective.predict(self.model, self.inputs)
        loss = self.objective.loss(predictions, self._train_loss, epoch, self._world.sum)
        self._whole_loss = self._world.sum(loss).item()
        yield loss

    def epoch_loss(self, losses: list[float]) -> float:
        """The sum of all shares."""
        return self._whole_loss

    def after_backward(self) -> None:
        """Sum the gradients of all processes."""
        gradients = [weight.grad for weight in self.model.parameters() if weight.grad is not None]
        total = self._world.sum(torch.cat([gradient.flatten() for gradient in gradients]))
        pieces = torch.split(total, [gradient.numel() for gradient in gradients])
        for gradient, piece in zip(gradients, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))
        self.step_traffic = self._world.traffic - self._before_step

    def validate(self) -> Validation:
        """The loss and the accuracy of the validation nodes of all processes."""
        before = self._world.traffic
        logits = self.model(*self.inputs)
        self.evaluation_traffic = self._world.traffic - before
        right = (logits[self.val.nodes].argmax(dim=1) == self.val.classes).sum()
        found = self._world.sum(torch.stack([self._loss(logits, self.val).double(), right.double()])) / self._num_val
        return Validation(*found.tolist())

    def logits(self) -> Tensor | None:
        """The logits of all nodes, in the first process; of a graph that was cut beforehand, each has its own."""
        own: Tensor = self.model(*self.inputs).cpu()
        if self._owner is None:
            return own
        counts = torch.bincount(self._owner, minlength=self._world.size).tolist()
        gathered = self._world.to_first(own, counts)
        if gathered is None:
            return None
        logits = torch.empty_like(gathered)
        logits[torch.argsort(self._owner, stable=True)] = gathered
        return logits

    def report(self) -> dict[str, Any] | None:
        """What each process holds and sends; the forecast is that of the partition, the other numbers are counted.

        There is nothing to report if no step was taken, as when only the files of a resumed run were missing.
        """
        if self.step_traffic is None:
            return None
        expected = forecast(self._convs, self.graph, self.objective)
        ours = {
            "nodes": self.graph.num_nodes,
            "halo_nodes": self.graph.halo.nodes.numel(),
            "entries": self.graph.num_entries,
            "halo_bytes_per_step": self.step_traffic.halo,
            "forecast_halo_bytes_per_step": expected.step.halo,
            "reduced_bytes_per_step": self.step_traffic.reduced,
            "forecast_reduced_bytes_per_step": expected.step.reduced,
            "halo_bytes_per_evaluation": self.evaluation_traffic.halo,
            "forecast_halo_bytes_per_evaluation": expected.evaluation.halo,
            "peak_memory_bytes": peak_memory(),
        }
        return {"parallel": "graph", "processes": self._world.size, "ranks": self._world.all_of(ours)}

    def _train_loss(self, logits: Tensor) -> Tensor:
        loss: Tensor = self._loss(logits, self.train) / self._train_weight
        return loss

    @staticmethod
    def _loss(logits: Tensor, labelled: Labelled) -> Tensor:
        return F.cross_entropy(logits[labelled.nodes], labelled.classes, labelled.class_weight, reduction="sum")


def _here(labelled: Labelled, own: Tensor) -> Labelled:
    """Those of some nodes that this process holds, as it numbers them."""
    row = torch.searchsorted(own, labelled.nodes).clamp(max=own.numel() - 1)
    return labelled._replace(nodes=row).some(own[row] == labelled.nodes)


class Forecast(NamedTuple):
    """What one process hands over in a step of training (forward, backward, sums) and in a forward pass."""

    step: Traffic
    evaluation: Traffic


class Exchanged(NamedTuple):
    """How many numbers a layer exchanges.

    Attributes:
        forward: Of each row that another process needs, in a forward pass.
        backward: Of each such row, in a backward pass.
        gradients: Of each row of the halo, in a backward pass by single products: gradients go the other way.
        values: Of each of our entries in another process's columns.
        values_back: Of each entry in our columns that another process has.
        summed: In sums over all processes, in each direction.
    """

    forward: int = 0
    backward: int = 0
    gradients: int = 0
    values: int = 0
    values_back: int = 0
    summed: int = 0


def forecast(convs: list[CaGATConv], graph: PartedGraph, objective: Objective | None = None) -> Forecast:
    """Count what layers exchange over a halo."""
    if graph.halo.world.size == 1:
        return Forecast(Traffic(), Traffic())
    itemsize = convs[0].att_src.itemsize
    sent = itemsize if graph.halo.dtype is None else graph.halo.dtype.itemsize
    *counts, summed = map(sum, zip(*(exchanged(conv, graph) for conv in convs), strict=True))
    forward, backward, gradients, values, values_back = (sent * count for count in counts)
    weights = sum(
        parameter.numel()
        for conv in convs
        for name, parameter in conv.named_parameters()
        # Where nothing is aggregated, the parameters of the attention get no gradient.
        if not is_zero(conv.coefficients().lam) or name.startswith(("lin.", "res.", "bias"))
    )
    out, back = sum(graph.halo.sent), sum(graph.halo.received)
    ours, theirs = graph.cut_entries() if values else (0, 0)
    in_step = (forward + backward) * out + gradients * back + values * ours + values_back * theirs
    objective = objective or Objective()
    samples, agreeing = objective.samples, objective.consistency > 0
    # To agree, processes tell each other how many nodes they have, and to align, what share of them each class has.
    told = agreeing + convs[-1].out_channels * (agreeing and objective.alignment > 0)
    return Forecast(
        step=Traffic(samples * in_step, (weights + 1 + told + 2 * samples * summed) * itemsize),
        evaluation=Traffic(forward * out, summed * itemsize),
    )


def exchanged(conv: CaGATConv, graph: PartedGraph) -> Exchanged:
    """What a layer exchanges."""
    features = conv.att_src.new_empty(0, conv.heads, conv.out_channels)
    if is_zero(conv.coefficients().lam):
        return Exchanged()  # Nothing is aggregated.
    if is_fused(features, graph, conv.diffusion):
        return _by_passes(conv)
    return _by_products(conv)


def _by_passes(conv: CaGATConv) -> Exchanged:
    """As in :mod:`cagat.diffusion.fused`."""
    alpha, _, xi = conv.coefficients()
    K, T = conv.K, conv.T
    has_context, has_affinity = K * T > 0 and not is_zero(alpha), K * T > 0 and not is_zero(xi)
    if not has_context:
        T = 1  # A step forgets all before it.
    if not has_affinity and not conv.feedback:
        K, T = (1, K * T) if has_context else (0, 1)  # All steps are one round, if there are any.
    layout = row_layout(conv.heads, conv.out_channels, conv.att_src.dtype)
    tops = [k * T if has_context else 0 for k in range(1, K + 1)]
    chain = sum(tops) if conv.feedback else max(tops, default=0)
    hidden = K if has_affinity or conv.feedback else 0
    matrices = K if has_affinity else 0
    # Z, the chain, the way up and the features of each round; their gradients; and the logits.
    return Exchanged(
        forward=(1 + chain + sum(tops) + hidden) * layout.width + layout.padded_heads,
        backward=(sum(top + 1 for top in tops) + chain + (hidden > 0 or K == 0)) * layout.width,
        values=(2 + matrices) * layout.padded_heads,
        values_back=(matrices + (K > 0 or conv.learn_coefficients)) * layout.padded_heads,
    )


def _by_products(conv: CaGATConv) -> Exchanged:
    """As in :mod:`cagat.diffusion.diffuse`: every row that is sent has a gradient that comes back."""
    alpha, _, xi = conv.coefficients()
    K, T, width = conv.K, conv.T, conv.heads * conv.out_channels
    has_context, has_affinity = not is_zero(alpha), not is_zero(xi)
    if not has_affinity and not conv.feedback:
        K, T = 1, K * T  # Only the last round is computed.
    # The steps that the product of each round goes through: down the chain, and up again.
    steps = [k * T if has_context else 0 for k in range(1, K + 1)]
    links = max(steps, default=0) + 1  # The chain of Z, shared by all rounds.
    if conv.feedback:
        links = 1 + sum(step + 1 for step in steps)  # A chain for each round.
    affine = K if has_affinity and conv.affinity == "edges" and T > 0 else 0
    rows = links + sum(steps) + affine
    blocks = sum(step if has_context else min(T, 1) for step in steps)
    summed = blocks * width * conv.out_channels if has_affinity and conv.affinity == "full" else 0
    # The logits of the attention, one per head, and then features.
    columns = conv.heads + rows * width
    return Exchanged(columns, gradients=columns, summed=summed)
