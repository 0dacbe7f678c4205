"""The run that is looked at."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.data.splits import Split
from cagat.errors import ConfigError, DatasetError
from cagat.explore.attention_layers import AttentionLayer, attention_layers
from cagat.training import TrainedRun

AnyRun = str | Path | TrainedRun
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """A trained run with what several pictures of it share, computed when first asked for.

    Attributes:
        run: The run.
    """

    run: TrainedRun

    @classmethod
    def of(cls, run: "AnyRun | Subject") -> "Subject":
        """The subject itself, or the one of a run or of its directory."""
        if isinstance(run, Subject):
            return run
        return cls(run if isinstance(run, TrainedRun) else TrainedRun(run))

    @property
    def graph(self) -> Data:
        """The graph that the model was trained on."""
        return self.run.problem.graph

    @property
    def split(self) -> Split:
        """The parts of its nodes."""
        split = self.run.problem.split
        assert split is not None
        return split

    @cached_property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return list(map(str, self.graph.node_names))

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return list(map(str, self.run.description.classes))

    @cached_property
    def labels(self) -> Integers:
        """The class of each node, -1 if it is not known."""
        return np.array(self.graph.y.numpy(), dtype=np.int64)

    @cached_property
    def probabilities(self) -> Floats:
        """What the model says, shape (nodes, classes)."""
        logits = self.run.logits(self.graph)
        return np.asarray(logits.double().softmax(dim=1).numpy())

    @cached_property
    def predicted(self) -> Integers:
        """The predicted class of each node."""
        return np.asarray(self.probabilities.argmax(axis=1), dtype=np.int64)

    @cached_property
    def parts(self) -> list[str]:
        """The part of each node: `train`, `val`, `test`, or nothing."""
        parts = [""] * len(self.names)
        for name in SPLIT_NAMES:
            for node in getattr(self.split, name).tolist():
                parts[node] = name
        return parts

    @cached_property
    def degrees(self) -> Integers:
        """How many other nodes each node has an edge from."""
        return np.bincount(self.graph.edge_index[1].numpy(), minlength=len(self.names)).astype(np.int64)

    @cached_property
    def layers(self) -> list[AttentionLayer]:
        """The attention of each layer that aggregates.

        Raises:
            NoAttentionError: The model has none.
        """
        return attention_layers(self.run)

    def layer(self, number: int | None) -> AttentionLayer:
        """A layer by its number, from 1, or the first that aggregates.

        Raises:
            NoAttentionError: The model has no attention.
            ConfigError: It has no such layer.
        """
        if number is None:
            return self.layers[0]
        known = {layer.number: layer for layer in self.layers}
        if number not in known:
            raise ConfigError(
                f"There is attention in layer {', '.join(map(str, known))}, but layer {number} was asked for."
            )
        return known[number]

    def node(self, wanted: str | int) -> int:
        """The number of a node, given by its name or its number.

        Raises:
            DatasetError: There is no such node.
        """
        if isinstance(wanted, str):
            if wanted in self._numbers:
                return self._numbers[wanted]
            raise DatasetError(
                f"The graph has no node called {wanted!r}; its first ones are called {', '.join(self.names[:3])}."
            )
        if not 0 <= wanted < len(self.names):
            raise DatasetError(
                f"The graph has no node {wanted}: its nodes are numbered from 0 to {len(self.names) - 1}."
            )
        return int(wanted)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}
