"""The smallest experiment: one configuration on one split of one graph."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from cagat import data
from cagat.data.splits import Split
from cagat.models import Labelled, NodeClassifier
from cagat.training import FitResult, TrainConfig, accuracy, fit
from cagat.training.compute import computing
from cagat.training.problem import DEFAULT_LABELS, fresh_model, load_graph


class Task(NamedTuple):
    """A graph, the number of labels per class, and the seed of the split and of the weights."""

    dataset: str
    labels: int
    seed: int


class Fitted(NamedTuple):
    """A fitted model, and what it was fitted on."""

    model: NodeClassifier
    inputs: tuple[Any, ...]
    graph: Data
    split: Split
    result: FitResult

    def scores(self, *parts: str) -> dict[str, Any]:
        """The accuracy on these parts ("val", "test") with the weights of the best epoch, and how the fit went."""
        best, found = self.result.best, {}
        with computing(threads=1, deterministic=False):
            for part in parts:
                nodes = getattr(self.split, part)
                found[f"{part}_accuracy"] = accuracy(self.model, self.inputs, Labelled(nodes, self.graph.y[nodes]))
        return {**found, "val_loss": best.val_loss, "epochs": len(self.result.history), "best_epoch": best.number}


def fit_task(values: dict[str, Any], task: Task, data_dir: str | None) -> Fitted:
    """Fit a configuration on one split, without a look at the labels of test nodes.

    On one thread: results then do not depend on how many processes work side by side, and two threads that share a
    busy core are slower than one.
    """
    config = TrainConfig.from_values({**values, **task._asdict()})
    graph = cached_graph(task.dataset, data_dir)
    val_labels = DEFAULT_LABELS if config.val_labels is None else config.val_labels
    split = data.split(graph.y, task.labels, val_labels, task.seed, class_names=graph.class_names)
    with computing(threads=1, deterministic=False), torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        model, inputs = fresh_model(config, graph, torch.device("cpu"))
        train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
        return Fitted(model, inputs, graph, split, fit(model, inputs, train, val, config.fit_options()))


def validation_scores(values: dict[str, Any], task: Task, data_dir: str | None) -> dict[str, Any]:
    """What a search may see of a fit: nothing here looks at a test label."""
    return fit_task(values, task, data_dir).scores("val")


@lru_cache(maxsize=4)
def cached_graph(dataset: str, data_dir: str | None) -> Data:
    """A graph; the last few are kept."""
    return load_graph(dataset, data_dir)
