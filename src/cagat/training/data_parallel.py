"""Epochs whose batches are shared by several processes."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from cagat.distributed import World
from cagat.models import Labelled, NodeClassifier
from cagat.training.epoch_plan import Validation
from cagat.training.mini_batches import Batches, MiniBatches


class DataParallel(MiniBatches):
    """In each step every process has a batch of its own, and the mean of their gradients is taken.

    It is torch's DistributedDataParallel. Processes may have different numbers of batches: those that are through
    shadow the others until these are, too (``join()``). The first process validates, for all.
    """

    # Processes must give up together, and a single loss only one of them knows.
    loss_is_global = False

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        batches: Batches,
        world: World,
    ) -> None:
        super().__init__(model, inputs, train, val, batches)
        self._world = world
        # With lam=0, for one, attention gets no gradient.
        self._network = DistributedDataParallel(model, find_unused_parameters=True) if world.size > 1 else None

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The losses of this process's batches."""
        if self._network is None:
            yield from super().losses(epoch)
            return
        with self._network.join(divide_by_initial_world_size=False):
            yield from self._losses(self._network, epoch, self._world.rank, self._world.size)

    def epoch_loss(self, losses: list[float]) -> float:
        """The mean over the batches of all processes."""
        total = self._world.sum(torch.tensor([sum(losses), len(losses)], dtype=torch.float64))
        return float(total[0] / total[1])

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
        found = super().validate() if self._world.is_first else None
        loss, accuracy = self._world.share(None if found is None else (found.loss.item(), found.accuracy))
        return Validation(torch.tensor(loss, dtype=torch.float64), accuracy)

    def logits(self) -> Tensor | None:
        """The logits of all nodes, in the first process."""
        return super().logits() if self._world.is_first else None
