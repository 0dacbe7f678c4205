"""The part of all processes but the first: they compute, and leave files to it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from cagat.distributed import World
from cagat.settings import TrainConfig
from cagat.training.compute import computing, random_numbers_of_its_own
from cagat.training.outputs import last_words
from cagat.training.problem import Problem
from cagat.training.trainer import DivergedError
from cagat.training.trainer_for import trainer_for


class Beginning(NamedTuple):
    """What the first process tells the others when all is ready.

    Attributes:
        state: Of the trainer, if a run is resumed.
        is_done: Whether there is nothing left to do.
    """

    state: dict[str, Any] | None
    is_done: bool


def follow(world: World, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Take part in the run of the first process until it ends.

    Args:
        world: The processes.
        should_stop: Asked after each epoch whether all should stop for now.
    """
    values: dict[str, Any] = world.share(None)
    config = TrainConfig.from_values(values)
    assert config.threads is not None
    assert config.device is not None
    device = torch.device(world.device(config.device))
    with computing(config.threads, config.deterministic), random_numbers_of_its_own(device):
        trainer = trainer_for(config, Problem.load(config), device, world)
        beginning = Beginning(*world.share(None))
        if beginning.state is not None:
            trainer.load_state_dict(beginning.state)
        if beginning.is_done:
            return
        try:
            while not trainer.finished:
                trainer.run_epoch()
                if world.any(should_stop()):
                    break
        except DivergedError:  # The first process says so.
            if trainer.best is None:
                return
        last_words(trainer)
