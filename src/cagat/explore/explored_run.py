"""A trained run with what several views of it share."""

from functools import cached_property
from pathlib import Path
from typing import Union

import numpy as np
import numpy.typing as npt
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.errors import ConfigError, DatasetError
from cagat.explore.attention import AttentionLayer, attention_layers
from cagat.training import TrainedRun
from cagat.training.predictions import Predictions

AnyRun = Union[str, Path, TrainedRun, "ExploredRun"]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PARTS = (*SPLIT_NAMES, "none")
UNLABELLED = "unlabelled"

ALL_UP_TO = 3000
SAMPLE = 400


class ExploredRun:
    """A trained run, its graph and its predictions as arrays, each computed on first use."""

    def __init__(self, run: TrainedRun) -> None:
        self.run = run

    @classmethod
    def of(cls, run: AnyRun) -> "ExploredRun":
        """From a run or its directory; an explored run is returned as it is."""
        if isinstance(run, ExploredRun):
            return run
        return cls(run if isinstance(run, TrainedRun) else TrainedRun(run))

    @property
    def graph(self) -> Data:
        """The graph that the model was trained on."""
        return self.run.problem.graph

    @cached_property
    def predictions(self) -> Predictions:
        """The labels of all nodes."""
        return self.run.predict()

    @cached_property
    def names(self) -> list[str]:
        """The names of the nodes."""
        return list(map(str, self.graph.node_names))

    @property
    def classes(self) -> list[str]:
        """The names of the classes; label -1 is the last, "unlabelled"."""
        return [*map(str, self.run.description.classes), UNLABELLED]

    @cached_property
    def labels(self) -> Integers:
        """The class of each node, -1 if unknown."""
        return np.array(self.graph.y.numpy(), dtype=np.int64)

    @property
    def predicted(self) -> Integers:
        """The predicted class of each node."""
        return np.asarray(self.predictions.probabilities.argmax(dim=1).numpy())

    @cached_property
    def parts(self) -> Integers:
        """The part of the split that each node is in, as an index into `PARTS`."""
        return np.array([PARTS.index(part or "none") for part in self.predictions.parts])

    @property
    def tests(self) -> Integers:
        """The test nodes whose class is known."""
        return np.flatnonzero((self.parts == PARTS.index("test")) & (self.labels >= 0))

    @cached_property
    def degrees(self) -> Integers:
        """How many other nodes each node has an edge from."""
        return np.bincount(self.graph.edge_index[1].numpy(), minlength=len(self.names)).astype(np.int64)

    @cached_property
    def layers(self) -> list[AttentionLayer]:
        """The attention of each layer that aggregates; raises NoAttentionError if there is none."""
        return attention_layers(self.run)

    def layer(self, number: int | None) -> AttentionLayer:
        """The layer with this number, from 1, or the first that aggregates."""
        known = {layer.number: layer for layer in self.layers}
        if number is not None and number not in known:
            raise ConfigError(
                f"There is attention in layer {', '.join(map(str, known))}, but layer {number} was asked for."
            )
        return self.layers[0] if number is None else known[number]

    def node(self, wanted: str | int) -> int:
        """The number of a node, given by its name or its number."""
        if isinstance(wanted, str):
            if wanted in self.names:
                return self.names.index(wanted)
            raise DatasetError(
                f"The graph has no node called {wanted!r}; its first ones are called {', '.join(self.names[:3])}."
            )
        if not 0 <= wanted < len(self.names):
            raise DatasetError(
                f"The graph has no node {wanted}: its nodes are numbered from 0 to {len(self.names) - 1}."
            )
        return int(wanted)

    def sample(self, count: int | None = None, wanted: tuple[str, ...] = (), *, tests_only: bool = False) -> Integers:
        """The nodes whose rows of S are computed, in ascending order: test nodes first, drawn with a fixed seed.

        The nodes called ``wanted`` come on top. By default it is all nodes of small graphs, and a sample of others.
        """
        size = len(self.names)
        if count is None:
            count = size if size <= ALL_UP_TO else SAMPLE
        if count < 1:
            raise ConfigError(f"The number of nodes must be at least 1, but is {count}.")
        order = np.random.default_rng(0).permutation(size)
        is_test = self.parts[order] == PARTS.index("test")
        pool = order[is_test] if tests_only else np.concatenate([order[is_test], order[~is_test]])
        named = np.array([self.node(name) for name in wanted], dtype=np.int64)
        return np.union1d(pool[:count], named).astype(np.int64)
