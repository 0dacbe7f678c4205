"""From a configuration and a graph to a trainer."""

import logging
from typing import Any

import torch

from cagat.distributed import World
from cagat.errors import ConfigError, DatasetError
from cagat.models import Labelled, NodeClassifier
from cagat.settings import TrainConfig
from cagat.training.cross_fit import FOLDS, CrossFit
from cagat.training.graph_parallel import GraphParallel
from cagat.training.mini_batches import Batches, ClusterBatches, MiniBatches, NeighbourhoodBatches
from cagat.training.objective import Objective
from cagat.training.problem import Problem, fresh_model, new_model
from cagat.training.trainer import EpochPlan, FullBatch, Trainer

_logger = logging.getLogger(__name__)


def make_trainer(config: TrainConfig, problem: Problem, device: torch.device, world: World) -> Trainer:
    """A trainer with fresh weights. All processes must call it."""
    digests = world.all_of(problem.fingerprint())
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise DatasetError(
                f"{config.dataset}: rank {rank} has another graph than rank 0. Give all machines the same files."
            )
    torch.manual_seed(config.seed)
    model, inputs = fresh_model(config, problem.graph, device)
    train, val = (problem.part(name).to(device) for name in ("train", "val"))
    options = config.fit_options()
    objective = Objective.of(options, problem.trained_on(), problem.num_nodes)
    if config.objective == "consistent" and 2 * problem.trained_on().nodes.numel() > problem.num_nodes:
        _logger.info(
            "Most nodes have a label to train on, so the model learns from labels alone (--objective supervised)."
        )
    plan = choose_plan(config, model, inputs, train, val, world, objective)
    if problem.folds is None:
        return Trainer(plan, options)
    folds = []
    for number in range(FOLDS):
        is_held_out = (problem.folds == number).to(device)
        fold = train.some(~is_held_out), train.some(is_held_out)._replace(class_weight=None)
        folds.append(choose_plan(config, new_model(config, problem.graph, device), inputs, *fold, world, objective))
    return CrossFit(plan, folds, options)


def choose_plan(
    config: TrainConfig,
    model: NodeClassifier,
    inputs: tuple[Any, ...],
    train: Labelled,
    val: Labelled,
    world: World,
    objective: Objective | None = None,
) -> EpochPlan:
    """The plan that a configuration asks for."""
    if config.parallel is None and not config.out_of_core and world.size > 1:
        raise ConfigError(
            f"There are {world.size} processes, but no word on how they share the work. Add --parallel graph, or "
            "--batching cluster --parallel data."
        )
    for flag, asked in (("objective consistent", config.objective == "consistent"), ("batching", config.batching)):
        if asked and (model.has_own_losses or model.closed_form):
            raise ConfigError(f"The model {config.model} has a training of its own, so --{flag} cannot be had with it.")
    if config.parallel == "graph" or config.out_of_core:
        halo_dtype = None if config.halo_dtype is None else getattr(torch, config.halo_dtype)
        return GraphParallel(model, inputs, train, val, world, objective, halo_dtype)
    if config.batching is None:
        return FullBatch(model, inputs, train, val, objective)
    return MiniBatches(model, inputs, train, val, _batches(config, model, inputs, train), world, objective)


def _batches(config: TrainConfig, model: NodeClassifier, inputs: tuple[Any, ...], train: Labelled) -> Batches:
    if config.batching == "cluster":
        assert config.parts is not None
        assert config.parts_per_batch is not None
        return ClusterBatches(inputs, train, config.parts, config.parts_per_batch, config.seed)
    assert config.batch_size is not None
    reach = model.reach()
    hops = reach if config.hops is None else config.hops
    if hops is None:
        raise ConfigError(
            f"How far {config.model} looks is not known, or is no number of hops. Say how large neighbourhoods shall "
            "be with --hops, or use --batching cluster."
        )
    if reach is None or hops < reach:
        exact = "" if reach is None else f"; with {reach} hops they would be exact"
        _logger.info("Neighbourhoods of %d hops are cut short, so that losses are approximate%s.", hops, exact)
    return NeighbourhoodBatches(inputs, train, hops, config.batch_size, config.seed)
