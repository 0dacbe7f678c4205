"""From a configuration and a graph to a trainer."""

import torch

from cagat.distributed import World
from cagat.errors import DatasetError
from cagat.settings import TrainConfig
from cagat.training.plans.choice import choose_plan
from cagat.training.problem import Problem, fresh_model
from cagat.training.trainer import Trainer


def trainer_for(config: TrainConfig, problem: Problem, device: torch.device, world: World) -> Trainer:
    """A trainer with fresh weights. All processes must call it.

    Raises:
        DatasetError: A process has another graph than the first.
        ConfigError: The model cannot be trained as the configuration says.
    """
    digests = world.all_of(problem.fingerprint())
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise DatasetError(
                f"{config.dataset}: rank {rank} has another graph than rank 0. Give all machines the same files."
            )
    torch.manual_seed(config.seed)
    model, inputs = fresh_model(config, problem.graph, device)
    train, val = (problem.part(name).to(device) for name in ("train", "val"))
    plan = choose_plan(config, model, inputs, train, val, world)
    return Trainer(model, plan.inputs, plan.train, plan.val, config.fit_options(), plan)
