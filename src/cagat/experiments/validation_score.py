"""How well a configuration does on the validation nodes of a split. Nothing here looks at a test label."""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from cagat import data
from cagat.models import Labelled, create
from cagat.training import FitOptions, TrainConfig, fit
from cagat.training.compute import computing
from cagat.training.problem import inputs_for, load_graph


class Cell(NamedTuple):
    """A graph, the number of labels a class, and the seed of the split and of the weights."""

    dataset: str
    labels: int
    seed: int


def validation_score(values: dict[str, Any], cell: Cell, data_dir: str | None) -> dict[str, Any]:
    """Fit a configuration on one split, and give the validation accuracy and loss of its best epoch."""
    config = TrainConfig.from_values({**values, **cell._asdict(), "threads": 1})
    assert config.feature_norm is not None
    graph = _graph(cell.dataset, data_dir)
    split = data.split(graph.y, cell.labels, config.val_labels or 20, cell.seed, class_names=graph.class_names)
    # One thread: results do not depend on how many work beside this one, and two threads that share a busy core are
    # slower than one.
    with computing(threads=1, deterministic=False), torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell.seed)
        model = create(config.model, graph.x.shape[1], len(graph.class_names), **config.hyperparameters())
        inputs = inputs_for(model, graph, config.feature_norm, torch.device("cpu"))
        train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
        options: FitOptions = config.fit_options()
        result = fit(model, inputs, train, val, options)
    return {
        "val_accuracy": result.best.val_accuracy,
        "val_loss": result.best.val_loss,
        "epochs": len(result.history),
        "best_epoch": result.best.number,
    }


@cache
def _graph(dataset: str, data_dir: str | None) -> Data:
    return load_graph(dataset, data_dir)
