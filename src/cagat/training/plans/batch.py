"""A part of a graph that a step is taken on."""

import hashlib
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from cagat.models import Labelled
from cagat.nn import SparseFeatures


class Batch(NamedTuple):
    """An induced subgraph: some nodes and all edges between them.

    Attributes:
        number: Which batch of its epoch it is.
        inputs: What the model takes.
        train: The nodes whose loss is taken, as the subgraph numbers them, and their classes.
    """

    number: int
    inputs: tuple[Any, ...]
    train: Labelled


class Batches(Protocol):
    """The batches of any epoch, a pure function of its number."""

    def of_epoch(self, epoch: int, rank: int = 0, size: int = 1) -> "list[tuple[int, Any]]":
        """The batches of an epoch that one of several processes takes, by number, before they are made."""

    def make(self, number: int, chosen: Any) -> Batch:
        """Make a batch."""


def rows_of(x: Tensor | SparseFeatures, nodes: Tensor) -> Tensor | SparseFeatures:
    """The features of some nodes."""
    return x.rows(nodes) if isinstance(x, SparseFeatures) else x[nodes]


def within(nodes: Tensor, some: Labelled, num_nodes: int) -> Labelled:
    """Those of some labelled nodes that are among `nodes`, numbered as there."""
    place = torch.full((num_nodes,), -1, device=nodes.device)
    place[nodes] = torch.arange(nodes.numel(), device=nodes.device)
    found = place[some.nodes]
    return Labelled(found[found >= 0], some.classes[found >= 0])


def seed_of(*numbers: int) -> int:
    """A seed for a purpose: of a run, an epoch, a batch. Which process asks makes no difference."""
    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
