"""What a run leaves for people: weights, predictions, curves and the result."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from torch import Tensor
from torch.nn import functional as F

from cagat.errors import CagatError
from cagat.files import atomic_write, read_bounded
from cagat.models import CaGAT
from cagat.safetensors_file import is_intact
from cagat.settings import TrainConfig
from cagat.style import BLUE, GREY, ORANGE
from cagat.training.cross_fit import CrossFit
from cagat.training.doubts import OutOfFold
from cagat.training.estimate import Estimate, accuracy_without_graph, judged_nodes, temperature_of
from cagat.training.evidence import find_evidence
from cagat.training.problem import Problem, inputs_for
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trained_run import Description, write_weights
from cagat.training.trainer import Epoch, Trainer

_LARGEST_RESULT = 100_000


@dataclass(frozen=True)
class RunResult:
    """What a run found: the line that `cagat train --json` prints.

    `test_accuracy` and the estimates are ``None`` as long as a run is not finished: until then no test label is looked
    at. With folds the validation loss and accuracy are those of all labelled nodes, out of fold; without validation
    nodes they are ``None``. Estimates are of the test nodes if there are any, else out of fold.
    """

    dataset: str
    model: str
    labels_per_class: int | None
    seed: int
    epochs: int
    best_epoch: int
    val_loss: float | None
    val_accuracy: float | None
    test_accuracy: float | None
    seconds: float
    run_dir: str
    protocol: str
    train_nodes: int
    val_nodes: int
    test_nodes: int
    estimated_accuracy: float | None = None
    estimated_low: float | None = None
    estimated_high: float | None = None
    estimated_on: int | None = None
    majority_rate: float | None = None
    balanced_accuracy: float | None = None
    accuracy_without_graph: float | None = None
    classes_predicted: int | None = None
    classes: int | None = None
    class_weight: str | None = None
    temperature: float | None = None


def write_outputs(
    directory: RunDirectory, config: TrainConfig, problem: Problem, trainer: Trainer, seconds: float
) -> RunResult:
    """Put the best weights back and write their files; those of a run that goes on later are written again then."""
    finished = trainer.finished
    logits, report = finish(trainer)
    graph, best = problem.graph, trainer.best
    assert logits is not None, "the process that writes has the logits"
    assert best is not None
    assert config.feature_norm is not None
    problem = problem.gathered(logits, with_test=finished)
    val, sizes = problem.judged("val", logits), problem.sizes
    temperature = temperature_of(problem, trainer, logits)
    # Of a finished run, and of no other, the labels of test nodes are looked at.
    judged = judged_nodes(problem, trainer, logits) if finished else None
    estimate = None if judged is None else Estimate.of(judged)
    compares = estimate is not None and config.baselines and config.model != "mlp"
    result = RunResult(
        dataset=config.dataset,
        model=config.model,
        labels_per_class=problem.labels,
        seed=config.seed,
        epochs=len(trainer.history),
        best_epoch=best.number,
        val_loss=F.cross_entropy(*val).item() if sizes["val"] else _or_none(best.val_loss),
        val_accuracy=val.accuracy if sizes["val"] else _or_none(best.val_accuracy),
        test_accuracy=problem.judged("test", logits).accuracy if finished and sizes["test"] else None,
        seconds=round(seconds, 3),
        run_dir=str(directory.path),
        protocol=problem.protocol,
        **{f"{part}_nodes": count for part, count in sizes.items()},
        temperature=temperature,
        classes=len(graph.class_names),
        class_weight="none" if problem.class_weight is None else "balanced",
        accuracy_without_graph=accuracy_without_graph(config, problem) if compares else None,
    )
    if estimate is not None:
        result = replace(
            result,
            estimated_accuracy=estimate.accuracy,
            estimated_low=estimate.low,
            estimated_high=estimate.high,
            estimated_on=estimate.nodes,
            majority_rate=estimate.majority_rate,
            balanced_accuracy=estimate.balanced_accuracy,
            classes_predicted=estimate.classes_predicted,
        )
    description = Description(
        model=config.model,
        hyperparameters=config.hyperparameters(),
        in_channels=graph.x.shape[1],
        classes=list(graph.class_names),
        features=list(graph.feature_names) or None,
        feature_norm=config.feature_norm,
        graph=problem.fingerprint(),
        temperature=temperature,
        encoder=graph.encoder.digest if "encoder" in graph else None,
        structural=graph.get("structural", False),
    )
    write_weights(directory.model, trainer.model, description)
    names = list(graph.class_names)
    evidence = None
    if isinstance(trainer.model, CaGAT) and "parts" not in graph:
        device = trainer.model.convs[0].att_src.device
        inputs = inputs_for(trainer.model, graph, config.feature_norm, device)
        evidence = find_evidence(trainer.model, inputs, logits.argmax(dim=1), problem.split.train)
    problem.write_predictions(directory.predictions, logits, temperature, evidence)
    if isinstance(trainer, CrossFit):
        train = problem.part("train")
        held_out = OutOfFold(
            [graph.node_names[node] for node in train.nodes.tolist()],
            train.classes.numpy(),
            names,
            (trainer.out_of_fold.double() / temperature).softmax(dim=1).numpy(),
        )
        held_out.write(directory)
    draw_curves(trainer.history, best.number, directory.curves)
    if report is not None:
        atomic_write(directory.parallel, json.dumps(report, indent=1) + "\n")
    if finished:
        atomic_write(directory.result, json.dumps(asdict(result)) + "\n")
    return result


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def finish(trainer: Trainer) -> tuple[Tensor | None, dict[str, Any] | None]:
    """Put the best weights back; the logits, and the report on processes. All processes must call it."""
    trainer.finish()
    return trainer.logits(), trainer.plan.report()


def read_result(directory: RunDirectory, has_folds: bool = False) -> RunResult | None:
    """The result of a finished run, if all its files are there and whole; they are written again otherwise."""
    files = (directory.predictions, directory.curves, directory.model_checksum)
    if not all(path.exists() for path in files) or not is_intact(directory.model):
        return None
    try:
        result = TypeAdapter(RunResult).validate_json(read_bounded(directory.result, _LARGEST_RESULT), strict=True)
        if has_folds and len(OutOfFold.read(directory).nodes) != result.train_nodes:
            return None
    except (OSError, ValueError, RunError):
        return None
    return replace(result, run_dir=str(directory.path))


def draw_curves(history: list[Epoch], best_epoch: int, path: Path) -> None:
    """Draw losses and validation accuracy over the epochs, with the best epoch marked, as PNG."""
    # Not pyplot, which has state of its own and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(9, 3.6))
    # A layout engine would find the same margins, and take longer than all the rest.
    figure.subplots_adjust(left=0.07, right=0.985, bottom=0.14, top=0.91, wspace=0.17)
    validated = not all(math.isnan(epoch.val_accuracy) for epoch in history)
    losses, *others = figure.subplots(1, 1 + validated, squeeze=False)[0]
    numbers = [epoch.number for epoch in history]
    # A single epoch is a point, not a line.
    style = {"marker": "o"} if len(history) == 1 else {"linewidth": 1.3}
    losses.plot(numbers, [epoch.loss for epoch in history], color=BLUE, label="training", **style)
    if not all(math.isnan(epoch.val_loss) for epoch in history):
        losses.plot(numbers, [epoch.val_loss for epoch in history], color=ORANGE, label="validation", **style)
    losses.set(title="Loss", xlabel="epoch")
    for axes in others:
        axes.plot(numbers, [epoch.val_accuracy for epoch in history], color=ORANGE, label="validation", **style)
        axes.set(title="Validation accuracy", xlabel="epoch")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axes in (losses, *others):
        axes.axvline(best_epoch, color=GREY, linestyle=":", linewidth=1, label=f"best: epoch {best_epoch}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    atomic_write(path, FigureCanvasAgg(figure).print_png)


@contextmanager
def tensorboard_log(directory: Path | None, epochs_done: int) -> Iterator[Callable[[Epoch], None]]:
    """A function that writes an epoch where TensorBoard finds it, or nowhere; epochs not done yet are forgotten."""
    if directory is None:
        yield lambda epoch: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise CagatError(
            "--tensorboard needs the package tensorboard. Install it with: pip install 'cagat[tensorboard]'"
        ) from error
    with SummaryWriter(str(directory), purge_step=epochs_done + 1) as writer:

        def log(epoch: Epoch) -> None:
            writer.add_scalar("loss/train", epoch.loss, epoch.number)
            if not math.isnan(epoch.val_loss):
                writer.add_scalar("loss/val", epoch.val_loss, epoch.number)
            if not math.isnan(epoch.val_accuracy):
                writer.add_scalar("accuracy/val", epoch.val_accuracy, epoch.number)

        yield log
