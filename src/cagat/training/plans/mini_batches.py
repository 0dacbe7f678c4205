"""Epochs in batches."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from cagat.models import Labelled, NodeClassifier
from cagat.training.plans.batch import Batches, seed_of
from cagat.training.plans.full_batch import FullBatch


class MiniBatches(FullBatch):
    """An epoch takes a step on each of some subgraphs; validation sees the whole graph.

    Batches and dropout are functions of the seed, the epoch and the number of the batch, so that a run can be resumed
    to the bit.

    Args:
        model: The model.
        inputs: What the model takes of the whole graph.
        train: The training nodes and their classes.
        val: The validation nodes and their classes.
        batches: The subgraphs.
        seed: Of the dropout.
    """

    def __init__(
        self,
        model: NodeClassifier,
        inputs: tuple[Any, ...],
        train: Labelled,
        val: Labelled,
        batches: Batches,
        seed: int,
    ) -> None:
        super().__init__(model, inputs, train, val)
        self._batches = batches
        self._seed = seed

    def losses(self, epoch: int) -> Iterator[Tensor]:
        """The loss of each batch."""
        return self._losses(self.model, epoch)

    def _losses(self, network: torch.nn.Module, epoch: int, rank: int = 0, size: int = 1) -> Iterator[Tensor]:
        for number, chosen in self._batches.of_epoch(epoch, rank, size):
            batch = self._batches.make(number, chosen)
            torch.manual_seed(seed_of(self._seed, epoch, number))
            yield F.cross_entropy(network(*batch.inputs)[batch.train.nodes], batch.train.classes)
