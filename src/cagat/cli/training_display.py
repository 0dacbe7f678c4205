"""A training while it goes on, and what it found."""

import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress

from cagat.cli.output import duration
from cagat.distributed import World
from cagat.training import Epoch, Run, RunResult, Trainer, join_run
from cagat.training.cross_fit import CrossFit

# Where there is no terminal, a line now and then says that the run is alive.
_SECONDS_BETWEEN_LINES = 10.0
INTERRUPTED = 130


class _Interruption:
    """Whether the user, or the system, wants the run to stop."""

    def __init__(self, world: World) -> None:
        self.wanted = False
        self.in_epochs = False
        self._world = world

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the first Ctrl-C or SIGTERM for a wish to stop after the epoch; others are obeyed at once."""
        # A signal that is ignored, as in a job in the background of a script, stays so.
        heard = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.getsignal(number) for number in heard if signal.getsignal(number) != signal.SIG_IGN}

        def note(number: int, frame: Any) -> None:
            # torchrun passes on what the terminal has sent already, and all processes must stop at the same place.
            alone = self._world.size == 1
            if alone and (self.wanted or not self.in_epochs):
                raise KeyboardInterrupt
            self.wanted = True
            if alone:
                typer.echo("Stopping after this epoch. Press Ctrl-C again to stop at once.", err=True)

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Display:
    """Shows epochs: on a terminal in one line that changes, elsewhere as lines."""

    def __init__(self, console: Console) -> None:
        self.bars = Progress("{task.description}", console=console, transient=True, disable=not console.is_terminal)
        self._console = console
        self._task = self.bars.add_task("Loading the graph", total=None)
        self._shown_at = self._first_at = time.perf_counter()
        self._epochs = 0

    def show(self, epoch: Epoch, trainer: Trainer) -> None:
        now = time.perf_counter()
        if self._epochs == 0:
            self._first_at = now  # It took much longer: the graph was loaded, and passes were compiled.
        self._epochs += 1
        if not self._console.is_terminal and now - self._shown_at < _SECONDS_BETWEEN_LINES:
            return
        self._shown_at = now
        found = "" if math.isnan(epoch.val_loss) else f", validation {epoch.val_loss:.3f}"
        found += "" if math.isnan(epoch.val_accuracy) else f" ({100 * epoch.val_accuracy:.1f} %)"
        folds = f", {len(trainer.folds)} folds" if isinstance(trainer, CrossFit) else ""
        text = f"epoch {epoch.number}{folds}: loss {epoch.loss:.3f}{found}"
        if self._epochs > 1:
            # Training ends at this epoch if validation improves no more, and later if it does.
            left = (trainer.last_epoch - len(trainer.history)) * (now - self._first_at) / (self._epochs - 1)
            text += f", at least {duration(left)} left"
        if self._console.is_terminal:
            self.bars.update(self._task, description=text)
        else:
            self._console.print(text, soft_wrap=True)


def follow_quietly(world: World) -> int:
    """Take part in the run of another process, and return the exit code; signals are wishes to stop, for all."""
    interruption = _Interruption(world)
    with interruption.listening():
        join_run(world, lambda: interruption.wanted)
    return INTERRUPTED if interruption.wanted else 0


def run_and_show(run: Run, as_json: bool, world: World) -> int:
    """Train, with progress on standard error and the result on standard output, and return the exit code."""
    interruption, display = _Interruption(world), _Display(Console(stderr=True))

    def after_epoch(epoch: Epoch, trainer: Trainer) -> None:
        interruption.in_epochs = True
        display.show(epoch, trainer)

    try:
        with interruption.listening(), display.bars:
            result = run.train(after_epoch, lambda: interruption.wanted, world)
    except KeyboardInterrupt:
        started = run.directory.config.exists()
        hint = f" Continue with: cagat train --resume {run.directory.path}" if started else ""
        typer.echo(f"Interrupted.{hint}", err=True)
        return INTERRUPTED
    if world.size > 1 and run.directory.parallel.exists():
        _print_parallel(json.loads(run.directory.parallel.read_text(encoding="utf-8")))
    if as_json:
        typer.echo(json.dumps(asdict(result)))
        for warning in _warnings(result):
            typer.echo(warning, err=True)
    else:
        _print(result)
    if not run.directory.result.exists():
        typer.echo(f"Interrupted. Continue with: cagat train --resume {result.run_dir}", err=True)
        return INTERRUPTED
    return 0


def _print_parallel(report: dict[str, Any]) -> None:
    most = {key: max(rank[key] for rank in report["ranks"]) for key in report["ranks"][0]}
    typer.echo(
        f"{report['processes']} processes: each holds at most {most['nodes']} nodes and {most['halo_nodes']} of halo, "
        f"sends {most['halo_bytes_per_step']} bytes of it in a step (forecast: "
        f"{most['forecast_halo_bytes_per_step']}), and sums {most['reduced_bytes_per_step']}",
        err=True,
    )


def _print(result: RunResult) -> None:
    labels = result.labels_per_class
    used = f"{result.train_nodes} labels" if labels is None else f"{labels} labels per class"
    lines = [f"{result.model} on {result.dataset}, {used}, seed {result.seed}: {_accuracy(result)}"]
    lines += _warnings(result)
    lines.append(f"{result.epochs} epochs in {result.seconds:.1f} s; best epoch: {result.best_epoch}")
    lines.append(f"Run directory: {result.run_dir}")
    typer.echo("\n".join(lines))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _accuracy(result: RunResult) -> str:
    """How right the model is, how that was found out, and how sure it is."""
    if result.estimated_accuracy is None or result.estimated_low is None or result.estimated_high is None:
        if result.val_accuracy is not None:
            return f"validation accuracy {_percent(result.val_accuracy)}"
        few = "too few labels to estimate it"
        return f"accuracy unknown: {few if result.protocol == 'all' else 'no labelled node is held out'}"
    how = "test accuracy" if result.test_accuracy is not None else "estimated accuracy"
    source = "test nodes" if result.test_accuracy is not None else "labelled nodes, out of fold"
    validation = "" if result.val_accuracy is None else f", validation accuracy {_percent(result.val_accuracy)}"
    assert result.balanced_accuracy is not None
    assert result.majority_rate is not None
    return (
        f"{how} {_percent(result.estimated_accuracy)}{validation if result.protocol == 'split' else ''}\n"
        f"95 % interval {100 * result.estimated_low:.1f} to {_percent(result.estimated_high)} ({result.estimated_on} "
        f"{source}), balanced accuracy {_percent(result.balanced_accuracy)}, most frequent class "
        f"{_percent(result.majority_rate)}"
    )


def _warnings(result: RunResult) -> list[str]:
    """What a user must know before trusting the predictions."""
    if result.estimated_accuracy is None or result.majority_rate is None:
        return []
    if result.classes_predicted == 1:
        return [
            "Warning: the model predicts one class for every node. Try --class-weight balanced, or label more nodes."
        ]
    if result.class_weight == "balanced":
        # Rare classes weigh more, at the cost of frequent ones; always the same class finds one class of all.
        if result.classes and result.balanced_accuracy is not None and result.balanced_accuracy <= 1 / result.classes:
            return ["Warning: the balanced accuracy is no better than predicting one class for every node."]
    elif result.estimated_accuracy <= result.majority_rate:
        return ["Warning: the accuracy is no better than always predicting the most frequent class."]
    alone = result.accuracy_without_graph
    if alone is not None and result.estimated_accuracy <= alone:
        return [f"Warning: the graph does not help. A perceptron without it reaches {_percent(alone)} (--model mlp)."]
    return []
