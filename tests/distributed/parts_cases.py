"""What processes do with a graph in parts, to be compared with one that has all of it."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cagat.data import normalize_features
from cagat.distributed import World
from cagat.models import CaGAT, Labelled
from cagat.nn import SparseFeatures
from cagat.parts import open_parts
from cagat.training import EpochPlan, FitOptions, FullBatch, Trainer
from cagat.training.graph_parallel import GraphParallel, forecast
from parts_on_disk import some_graph

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "dense and weighted": {"weighted": True, "dense": True},
    "directed and weighted": {"weighted": True, "directed": True},
}
EPOCHS = 2


def _model(features: int) -> CaGAT:
    torch.manual_seed(0)
    return CaGAT(features, 4, 2, 3, heads=4, K=2, T=1).double()


def _labelled(nodes: Tensor, y: Tensor, parity: int) -> Labelled:
    """Every second node of the whole graph, by its place among these."""
    places = torch.nonzero(nodes % 2 == parity).flatten()
    return Labelled(places, y[places])


def _trained(plan: EpochPlan) -> tuple[list[float], list[Tensor], Tensor]:
    """Losses, gradients and weights of a few epochs, and the logits after them."""
    trainer = Trainer(plan, FitOptions(lr=0.05))
    losses, found = [], []
    for _ in range(EPOCHS):
        losses += trainer.run_epoch()[1:3]
        # Adam forgets by what number all gradients are multiplied, so that weights alone would not tell.
        found += [weight.grad.clone() for weight in plan.model.parameters() if weight.grad is not None]
    plan.model.eval()
    logits = trainer.logits()
    assert logits is not None
    return losses, found + [weight.detach().clone() for weight in plan.model.parameters()], logits


def alone(case: dict[str, Any]) -> tuple[list[float], list[Tensor], Tensor]:
    """One process with the whole graph."""
    graph = some_graph(**case)
    x = normalize_features(graph.x.double(), "l1")
    features = x if x.layout is torch.strided else SparseFeatures.from_tensor(x)
    weight = getattr(graph, "edge_weight", None)
    nodes = torch.arange(graph.num_nodes)
    train, val = (_labelled(nodes, graph.y, parity) for parity in (0, 1))
    model = _model(graph.x.shape[1])
    return _trained(FullBatch(model, (features, graph.edge_index, weight), train, val))


def in_parts(world: World, directory: Path) -> dict[str, Any]:
    """The same with the parts of this process."""
    parts = open_parts(directory, world)
    nodes, y = parts.tensor("nodes"), parts.tensor("labels").long()
    model = _model(parts.manifest.features)
    inputs = parts.inputs(normalize_features(parts.x().double(), "l1"), model)
    plan = GraphParallel(model, inputs, *(_labelled(nodes, y, parity) for parity in (0, 1)), world)
    losses, gradients, logits = _trained(plan)
    expected = forecast(list(model.convs), plan.graph).step
    return {
        "losses": losses,
        "gradients and weights": [one.tolist() for one in gradients],
        "nodes": nodes.tolist(),
        "logits": logits.tolist(),
        "as forecast": plan.step_traffic == expected,
    }


def differences(directory: Path, case: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, float]:
    """How far what processes found is from what one finds."""
    losses, gradients, logits = alone(case)
    ours = torch.empty_like(logits)
    for one in found:
        ours[one["nodes"]] = torch.tensor(one["logits"], dtype=torch.float64)
    return {
        "losses": max((torch.tensor(one["losses"]) - torch.tensor(losses)).abs().max().item() for one in found),
        "gradients and weights": max(
            (torch.tensor(mine, dtype=torch.float64) - theirs).abs().max().item()
            for one in found
            for mine, theirs in zip(one["gradients and weights"], gradients, strict=True)
        ),
        "logits": (ours - logits).abs().max().item(),
    }


def run_parts(directories: list[Path], out: Path) -> None:
    """In each process: all graphs, one after the other."""
    with World.joined() as world:
        torch.set_num_threads(1)
        found = [world.all_of(in_parts(world, directory)) for directory in directories]
        if world.is_first:
            out.write_text(json.dumps(found))
