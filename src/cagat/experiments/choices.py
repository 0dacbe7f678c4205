"""Runs on nodes that a strategy chose to be labelled, instead of nodes drawn per class."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from cagat.data.loading import graph_name
from cagat.data.splits import Split
from cagat.errors import DatasetError
from cagat.experiments.jobs import Fitted, Job, Task, cached_graph, fit_task
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.suggest import LIKES_A_MODEL, suggest_in

MULTIPLES = (1, 2, 5, 10, 20)
"""How many labels there are in all, in multiples of the number of classes."""


@dataclass(frozen=True)
class ChosenJob(Job):
    """One run on the labels of nodes that a strategy chose without seeing any label.

    The labels of the task count per class on average: so many times the number of classes are chosen, of whatever
    classes they are. All other nodes are test nodes. The seed is that of the strategy and of the weights. A strategy
    whose paper asks a model chooses in stages, each after a fit to what it chose before; others choose all at once.
    """

    strategy: str = "random"

    @cached_property
    def asked(self) -> dict[str, Any]:
        """See :attr:`Job.asked`; the strategy is part of it."""
        return {**Job.asked.func(self), "strategy": self.strategy}  # type: ignore[attr-defined]

    def require_drawable_split(self, data_dir: str | None) -> None:
        """See :meth:`Job.require_drawable_split`; what is chosen may be any node, and must have a label to learn."""
        graph, name = cached_graph(self.task.dataset, data_dir, ()), graph_name(self.task.dataset)
        unknown, wanted = int((graph.y < 0).sum()), (self.task.labels or 1) * len(graph.class_names)
        if unknown:
            raise DatasetError(
                f"{name}: {unknown} of {graph.num_nodes} nodes have no label, and a strategy may choose any of them. "
                "Give a graph in which every node has a label."
            )
        if wanted >= graph.num_nodes:
            raise DatasetError(
                f"{name} with --labels {self.task.labels}: of {graph.num_nodes} nodes {wanted} would be chosen, and "
                "none left to test on. Ask for fewer labels per class."
            )

    def fit(self, data_dir: str | None) -> Fitted:
        """See :meth:`Job.fit`."""
        graph, space = cached_graph(self.task.dataset, data_dir, ()), cached_space(self.task.dataset, data_dir)
        classes, labels, seed = len(graph.class_names), self.task.labels or 1, self.task.seed
        stages = [many for many in MULTIPLES if many < labels] if self.strategy in LIKES_A_MODEL else []
        chosen, probabilities = np.empty(0, dtype=np.int64), None
        for multiple in (*stages, labels):
            found = suggest_in(
                space,
                multiple * classes - len(chosen),
                labelled=np.sort(chosen),
                strategy=self.strategy,
                seed=seed,
                probabilities=probabilities,
                num_classes=classes,
            )
            chosen = np.append(chosen, [one.index for one in found]).astype(np.int64)
            fitted = fit_on(chosen, self.values(), self.task, data_dir)
            with torch.no_grad():
                probabilities = fitted.model(*fitted.inputs).double().softmax(dim=1).numpy()
        return fitted

    def scores(self, fitted: Fitted) -> dict[str, Any]:
        """See :meth:`Job.scores`; and how many labels there were."""
        return {**super().scores(fitted), "labelled": len(fitted.split.train)}


def fit_on(nodes: Any, values: dict[str, Any], task: Task, data_dir: str | None) -> Fitted:
    """Fit a configuration to the labels of these nodes; all others are test nodes."""

    def draw(graph: Data, *_: Any) -> Split:
        train, none = torch.as_tensor(np.sort(nodes)), torch.empty(0, dtype=torch.int64)
        return Split(train, none, torch.from_numpy(np.setdiff1d(np.arange(graph.num_nodes), nodes)))

    return fit_task(values, task, data_dir, draw)


@lru_cache(maxsize=4)
def cached_space(dataset: str, data_dir: str | None) -> NodeSpace:
    """A graph as strategies look at it; the last few are kept."""
    graph = cached_graph(dataset, data_dir, ())
    return NodeSpace(graph.x, graph.edge_index, getattr(graph, "edge_weight", None))
