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
from cagat.training.evaluation import Evaluation
from cagat.training.problem import DEFAULT_LABELS, fresh_model, load_graph


class Cell(NamedTuple):
    """A graph, the number of labels a class, and the seed of the split and of the weights."""

    dataset: str
    labels: int
    seed: int


class Fitted(NamedTuple):
    """A model that was fitted on a cell, and what it was fitted on."""

    model: NodeClassifier
    inputs: tuple[Any, ...]
    graph: Data
    split: Split
    result: FitResult


def fit_cell(values: dict[str, Any], cell: Cell, data_dir: str | None) -> Fitted:
    """Fit a configuration on one split. The labels of test nodes are not looked at.

    On one thread: results do not depend on how many work beside this one, and two threads that share a busy core are
    slower than one.
    """
    config = TrainConfig.from_values({**values, **cell._asdict()})
    graph = known_graph(cell.dataset, data_dir)
    wanted = DEFAULT_LABELS if config.val_labels is None else config.val_labels
    split = data.split(graph.y, cell.labels, wanted, cell.seed, class_names=graph.class_names)
    with computing(threads=1, deterministic=False), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell.seed)
        model, inputs = fresh_model(config, graph, torch.device("cpu"))
        train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
        return Fitted(model, inputs, graph, split, fit(model, inputs, train, val, config.fit_options()))


def validation_score(values: dict[str, Any], cell: Cell, data_dir: str | None) -> dict[str, Any]:
    """The validation accuracy and loss with the weights of the best epoch. Nothing here looks at a test label."""
    fitted = fit_cell(values, cell, data_dir)
    result, nodes = fitted.result, fitted.split.val
    with computing(threads=1, deterministic=False):
        found = accuracy(fitted.model, fitted.inputs, Labelled(nodes, fitted.graph.y[nodes]))
    return {
        "val_accuracy": found,
        "val_loss": result.best.val_loss,
        "epochs": len(result.history),
        "best_epoch": result.best.number,
    }


def reported_score(values: dict[str, Any], cell: Cell, data_dir: str | None) -> tuple[dict[str, Any], FitResult]:
    """The accuracy on validation and test nodes with the weights of the best epoch, and the course of the fit."""
    fitted = fit_cell(values, cell, data_dir)
    with computing(threads=1, deterministic=False), torch.no_grad():
        logits = fitted.model(*fitted.inputs)
    shares = Evaluation.of(logits, fitted.graph, fitted.split).accuracy
    found = {
        "test_accuracy": shares["test"],
        "val_accuracy": shares["val"],
        "val_loss": fitted.result.best.val_loss,
        "epochs": len(fitted.result.history),
        "best_epoch": fitted.result.best.number,
    }
    return found, fitted.result


@lru_cache(maxsize=4)
def known_graph(dataset: str, data_dir: str | None) -> Data:
    """A graph; the last few are remembered."""
    return load_graph(dataset, data_dir)
