"""What a run leaves for people: weights, predictions, curves and the result."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from cagat.files import atomic_write, read_bounded
from cagat.settings import TrainConfig
from cagat.training.curves import draw_curves
from cagat.training.plans.full_batch import accuracy_of
from cagat.training.predictions import Predictions
from cagat.training.problem import Problem
from cagat.training.run_directory import RunDirectory
from cagat.training.trainer import Trainer
from cagat.training.weights_file import Description, weights_are_whole, write_weights

_LARGEST_RESULT = 100_000


@dataclass(frozen=True)
class RunResult:
    """What a run found: the line that `cagat train --json` prints.

    `test_accuracy` is ``None`` as long as a run is not finished: until then no test label is looked at.
    """

    dataset: str
    model: str
    labels_per_class: int | None
    seed: int
    epochs: int
    best_epoch: int
    val_loss: float
    val_accuracy: float
    test_accuracy: float | None
    seconds: float
    run_dir: str

    @property
    def is_sound(self) -> bool:
        """Whether the numbers are numbers, as they need not be in a file."""
        numbers = [self.seed, self.epochs, self.best_epoch, self.val_loss, self.val_accuracy, self.seconds]
        numbers += [number for number in (self.test_accuracy, self.labels_per_class) if number is not None]
        return all(isinstance(number, (int, float)) for number in numbers)


def write_outputs(
    directory: RunDirectory, config: TrainConfig, problem: Problem, trainer: Trainer, seconds: float
) -> RunResult:
    """Put the best weights back and write their files; those of a run that goes on later are written again then."""
    finished = trainer.finished
    logits, report = last_words(trainer)
    graph, best = problem.graph, trainer.best
    assert logits is not None, "the process that writes has the logits"
    assert best is not None
    assert problem.split is not None
    val = problem.part("val")
    # Of a finished run, and of no other, the labels of test nodes are looked at.
    result = RunResult(
        dataset=config.dataset,
        model=config.model,
        labels_per_class=problem.labels,
        seed=config.seed,
        epochs=len(trainer.history),
        best_epoch=best.number,
        val_loss=F.cross_entropy(logits[val.nodes], val.classes).item(),
        val_accuracy=accuracy_of(logits, val),
        test_accuracy=accuracy_of(logits, problem.part("test")) if finished else None,
        seconds=round(seconds, 3),
        run_dir=str(directory.path),
    )
    write_weights(directory.model, trainer.model, _description(config, problem))
    Predictions.from_logits(logits, graph, graph.class_names, problem.split).write(directory.predictions)
    draw_curves(trainer.history, best.number, directory.curves)
    if report is not None:
        atomic_write(directory.parallel, json.dumps(report, indent=1) + "\n")
    if finished:
        atomic_write(directory.result, json.dumps(asdict(result)) + "\n")
    return result


def last_words(trainer: Trainer) -> tuple[Tensor | None, dict[str, Any] | None]:
    """Put the best weights back; the logits, and what there is to say about processes. All of them must call it."""
    trainer.finish()
    return trainer.logits(), trainer.plan.report()


def read_result(directory: RunDirectory) -> RunResult | None:
    """The result of a finished run, if all its files are there and whole; they are written again otherwise."""
    files = (directory.predictions, directory.curves)
    if not all(path.exists() for path in files) or not weights_are_whole(directory.model):
        return None
    try:
        found: dict[str, Any] = json.loads(read_bounded(directory.result, _LARGEST_RESULT))
        result = RunResult(**found | {"run_dir": str(directory.path)})
        return result if result.is_sound else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _description(config: TrainConfig, problem: Problem) -> Description:
    assert config.feature_norm is not None
    return Description(
        model=config.model,
        hyperparameters=config.hyperparameters(),
        in_channels=problem.graph.x.shape[1],
        classes=list(problem.graph.class_names),
        features=list(problem.graph.feature_names) or None,
        feature_norm=config.feature_norm,
        graph=problem.fingerprint(),
    )
