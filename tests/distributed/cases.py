"""What each process of `test_parallel.py` does: all cases in one start."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cagat.data.synthetic import Synthetic
from cagat.distributed import World
from cagat.models import CaGAT, Labelled
from cagat.nn import SparseFeatures
from cagat.training import EpochPlan, FitOptions, FullBatch, Trainer
from cagat.training.graph_parallel import GraphParallel, forecast
from cagat.training.mini_batches import ClusterBatches, MiniBatches
from cagat.training.objective import Objective

NODES, FEATURES, CLASSES = 60, 6, 3
EPOCHS = 3
CONSISTENT = Objective(samples=2, consistency=1.5, ramp=2, sharpening=0.5, alignment=0.7)

# Each is trained over nodes in parts and compared with one process.
GRAPH_CASES: dict[str, dict[str, Any]] = {
    "the paper's": {"K": 3, "T": 2},
    "without affinity": {"K": 2, "T": 2, "xi": 0.0},
    "without context": {"K": 2, "T": 1, "alpha": 0.0, "xi": 0.1},
    "GAT": {"K": 0, "T": 0, "alpha": 0.0, "xi": 0.0, "lam": 1.0},
    "affinity on all pairs": {"K": 2, "T": 1, "xi": 0.05, "affinity": "full"},
    "all pairs without context": {"K": 1, "T": 2, "alpha": 0.0, "xi": 0.05, "affinity": "full"},
    "feedback": {"K": 2, "T": 2, "feedback": True},
    "feedback without affinity": {"K": 2, "T": 1, "feedback": True, "xi": 0.0},
    "sym": {"K": 1, "T": 2, "normalization": "sym"},
    "walk": {"K": 2, "T": 1, "normalization": "walk"},
    "gcn, directed and weighted": {"K": 2, "T": 1, "normalization": "gcn", "directed": True},
    "propagation in the last layer": {"K": 2, "T": 1, "propagation": "last"},
    "learnt": {"K": 1, "T": 1, "learn_coefficients": True},
    "dense features": {"K": 1, "T": 1, "dense": True},
    "directed and weighted": {"K": 2, "T": 1, "directed": True},
    "consistent": {"K": 2, "T": 1, "objective": CONSISTENT},
    "rounded in transit": {"K": 1, "T": 1, "halo_dtype": torch.bfloat16},
    "all pairs, rounded in transit": {"K": 1, "T": 1, "affinity": "full", "halo_dtype": torch.bfloat16},
}
_NOT_OF_THE_LAYER = ("dense", "directed", "objective", "halo_dtype")


def graph(*, dense: bool = False, directed: bool = False) -> tuple[tuple[Any, ...], Labelled, Labelled]:
    raw = Synthetic(nodes=NODES, degree=4, classes=CLASSES, features=FEATURES, seed=1).graph()
    edges = torch.from_numpy(raw.edge_index)
    weight = None
    if directed:
        weight = torch.linspace(0.5, 2.0, edges.size(1))
    else:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    x = torch.from_numpy(raw.features.toarray()).double()
    labels = torch.from_numpy(raw.labels)
    train, val = torch.arange(0, NODES, 2), torch.arange(1, NODES, 2)
    features = x if dense else SparseFeatures.from_tensor(x.to_sparse())
    return (features, edges, weight), Labelled(train, labels[train]), Labelled(val, labels[val])


def network(**settings: Any) -> CaGAT:
    torch.manual_seed(0)
    return CaGAT(FEATURES, 4, 2, CLASSES, heads=4, **settings).double()


def trained(
    plan_for: Callable[..., EpochPlan], settings: dict[str, Any], case: dict[str, Any]
) -> tuple[Trainer, list[float], list[Tensor], Tensor | None]:
    """Losses, gradients and weights of a few epochs, and the logits after them."""
    inputs, train, val = graph(**case)
    model = network(**settings)
    plan = plan_for(model, inputs, train, val)
    trainer = Trainer(plan, FitOptions(lr=0.05))
    losses, gradients = [], []
    for _ in range(EPOCHS):
        epoch = trainer.run_epoch()
        losses += [epoch.loss, epoch.val_loss, epoch.val_accuracy]
        gradients += [torch.zeros(1) if weight.grad is None else weight.grad.clone() for weight in model.parameters()]
    model.eval()
    return trainer, losses, gradients + [weight.detach().clone() for weight in model.parameters()], trainer.logits()


def compare_with_one_process(world: World) -> dict[str, Any]:
    found = {}
    for name, case in GRAPH_CASES.items():
        settings = {key: value for key, value in case.items() if key not in _NOT_OF_THE_LAYER}
        of_graph = {key: case[key] for key in ("dense", "directed") if key in case}
        objective = case.get("objective")
        in_parts = partial(_in_parts, world, objective, case.get("halo_dtype"))
        trainer, *ours = trained(in_parts, settings, of_graph)
        plan = trainer.plan
        assert isinstance(plan, GraphParallel)
        plan.validate()
        expected = forecast(list(plan.model.convs), plan.graph, objective)
        traffic = world.all_of(
            [plan.step_traffic == expected.step, plan.evaluation_traffic == expected.evaluation, plan.step_traffic.halo]
        )
        held = world.all_of([plan.graph.num_nodes, plan.graph.halo.nodes.numel()])
        if world.is_first:
            _, *theirs = trained(partial(FullBatch, objective=objective), settings, of_graph)
            found[name] = {
                "losses": _difference(torch.tensor(ours[0]), torch.tensor(theirs[0])),
                "gradients and weights": max(map(_difference, ours[1], theirs[1])),
                "logits": _difference(ours[2], theirs[2]),
                "traffic": traffic,
                "held": held,
            }
    return found


def _in_parts(world: World, objective: Objective | None, halo_dtype: torch.dtype | None, *given: Any) -> GraphParallel:
    return GraphParallel(*given, world, objective, halo_dtype)


def repeated(world: World) -> bool:
    """Whether training twice gives the same bits in every process."""
    runs = [trained(partial(_in_parts, world, None, None), {"K": 2, "T": 1}, {})[1:3] for _ in range(2)]
    same = runs[0][0] == runs[1][0] and all(map(torch.equal, runs[0][1], runs[1][1]))
    return not world.any(not same)


def uneven_batches(world: World) -> dict[str, Any]:
    """Batches that several processes cannot share equally: in most epochs some have one more than others."""
    shares: list[list[int]] = []

    def plan(model: CaGAT, inputs: tuple[Any, ...], train: Labelled, val: Labelled) -> MiniBatches:
        batches = ClusterBatches(inputs, train, 5, 1, seed=0)
        counts = [len(batches.of_epoch(epoch)) for epoch in range(1, EPOCHS + 1)]
        shares.extend([len(range(rank, count, world.size)) for rank in range(world.size)] for count in counts)
        return MiniBatches(model, inputs, train, val, batches, world, CONSISTENT)

    trainer, losses, _, logits = trained(plan, {"K": 1, "T": 1}, {})
    state = trainer.state_dict()
    remembered = [tensor for name, tensor in state.items() if name.startswith(("model.", "optimizer."))]
    everywhere = world.all_of((losses, [tensor.tolist() for tensor in remembered]))
    _, alone, _, _ = trained(
        lambda model, inputs, train, val: MiniBatches(
            model, inputs, train, val, ClusterBatches(inputs, train, 5, 1, seed=0)
        ),
        {"K": 1, "T": 1},
        {},
    )
    return {
        "the same everywhere": all(one == everywhere[0] for one in everywhere),
        "only the first has logits": (logits is not None) == world.is_first,
        "as alone": losses == alone,
        "steps": int(state["optimizer.0.step"]),
        "shares": shares,
    }


def one_batch(world: World) -> dict[str, float]:
    """A single batch: the processes without any must change nothing, also where parameters have no use."""
    differences = {}
    for name, settings in {"context": {"K": 1, "T": 1}, "no attention": {"lam": 0.0}}.items():
        arguments = (lambda inputs, train: ClusterBatches(inputs, train, 1, 1, seed=0), settings)
        together = _weights(*arguments, lambda *given: MiniBatches(*given, world))
        alone = _weights(*arguments, lambda *given: MiniBatches(*given))
        differences[name] = max(map(_difference, together, alone))
    return differences


def _weights(batches: Callable[..., Any], settings: dict[str, Any], plan: Callable[..., EpochPlan]) -> list[Tensor]:
    def with_batches(model: CaGAT, inputs: tuple[Any, ...], train: Labelled, val: Labelled) -> EpochPlan:
        return plan(model, inputs, train, val, batches(inputs, train))

    named = trained(with_batches, settings, {})[0].model.named_parameters()
    # Weights without use get no gradient in one process and zeros in several, where they decay.
    return [weight.detach() for name, weight in named if settings.get("lam") != 0 or "att_" not in name]


def _difference(ours: Tensor, theirs: Tensor) -> float:
    return (ours - theirs).abs().max().item() if ours.numel() else 0.0


def run_cases(out: Path) -> None:
    with World.joined() as world:
        torch.set_num_threads(1)
        found = {"graph": compare_with_one_process(world), "data": uneven_batches(world), "one batch": one_batch(world)}
        found["repeated"] = repeated(world)
        if world.is_first:
            out.write_text(json.dumps(found))
