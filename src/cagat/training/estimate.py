"""How right a model will be on nodes whose label nobody knows, and whether that is any good."""

import logging
from typing import NamedTuple

import torch
from torch import Tensor

from cagat.distributed import World
from cagat.errors import CagatError
from cagat.settings import TrainConfig
from cagat.training.calibration import fit_temperature, interval
from cagat.training.cross_fit import CrossFit
from cagat.training.make_trainer import make_trainer
from cagat.training.problem import Judged, Problem
from cagat.training.trainer import Trainer

_logger = logging.getLogger(__name__)


class Estimate(NamedTuple):
    """What the nodes that a model did not learn from say about it.

    Attributes:
        nodes: How many they are.
        accuracy: The share that is right.
        low: Where the 95 % interval of that begins,
        high: and where it ends.
        balanced_accuracy: The mean over the classes of the share of their nodes that was found.
        majority_rate: The share of the most frequent class.
        classes_predicted: How many classes were predicted at all.
    """

    nodes: int
    accuracy: float
    low: float
    high: float
    balanced_accuracy: float
    majority_rate: float
    classes_predicted: int

    @classmethod
    def of(cls, judged: Judged) -> "Estimate":
        """Compare logits with labels."""
        predicted, classes = judged.logits.argmax(dim=1), judged.classes
        right = predicted == classes
        recalls = [right[classes == number].double().mean() for number in torch.unique(classes).tolist()]
        return cls(
            nodes=len(classes),
            accuracy=right.double().mean().item(),
            **dict(zip(("low", "high"), interval(int(right.sum()), len(classes)), strict=True)),
            balanced_accuracy=torch.stack(recalls).mean().item(),
            majority_rate=int(torch.bincount(classes).max()) / len(classes),
            classes_predicted=len(torch.unique(predicted)),
        )


def judged_nodes(problem: Problem, trainer: Trainer, logits: Tensor) -> Judged | None:
    """The test nodes; else, with folds, all labelled nodes, each by a model that has not seen its label."""
    if problem.sizes["test"]:
        return problem.judged("test", logits)
    if isinstance(trainer, CrossFit):
        return Judged(trainer.out_of_fold, problem.part("train").classes)
    return None


def temperature_of(problem: Problem, trainer: Trainer, logits: Tensor) -> float:
    """From labelled nodes that the model did not learn from and that no accuracy is measured on."""
    if isinstance(trainer, CrossFit):
        return fit_temperature(trainer.out_of_fold, problem.part("train").classes)
    shares = None if problem.val_labels is None else problem.predicted_shares(logits)
    return fit_temperature(*problem.judged("val", logits), shares)


def accuracy_without_graph(config: TrainConfig, problem: Problem) -> float | None:
    """The accuracy of a perceptron that sees the features alone, on the nodes that the model is judged by.

    Nothing if the features are made of the graph, or are in parts, or if it cannot be fitted: the model itself must not
    suffer from it.
    """
    if problem.graph.get("structural", False) or "parts" in problem.graph:
        return None
    keys = ("dataset", "data_dir", "seed", "feature_norm", "class_weight", "fixed_epochs")
    plain = {key: getattr(config, key) for key in keys}
    given = {key: value for key, value in plain.items() if value is not None}
    perceptron = TrainConfig.from_values(given | {"model": "mlp"})
    try:
        with torch.random.fork_rng(devices=[]):
            trainer = make_trainer(perceptron, problem, torch.device("cpu"), World())
            while not trainer.finished:
                trainer.run_epoch()
            trainer.finish()
            logits = trainer.logits()
    except CagatError as error:
        _logger.warning("The perceptron without the graph could not be fitted for comparison: %s", error)
        return None
    assert logits is not None
    judged = judged_nodes(problem, trainer, logits)
    return None if judged is None else judged.accuracy
