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
                typer.echo("Stopping after this epoch; again to stop at once.", err=True)

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
        self._shown_at = self._started_at = time.perf_counter()
        self._epochs = 0

    def show(self, epoch: Epoch, trainer: Trainer) -> None:
        now = time.perf_counter()
        self._epochs += 1
        if not self._console.is_terminal and now - self._shown_at < _SECONDS_BETWEEN_LINES:
            return
        self._shown_at = now
        accuracy = "" if math.isnan(epoch.val_accuracy) else f" ({100 * epoch.val_accuracy:.1f} %)"
        # Training ends at this epoch if validation improves no more, and later if it does.
        left = (trainer.last_epoch - len(trainer.history)) * (now - self._started_at) / self._epochs
        text = (
            f"epoch {epoch.number}: loss {epoch.loss:.3f}, validation {epoch.val_loss:.3f}{accuracy}, "
            f"at least {duration(left)} left"
        )
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
        hint = f" Go on with: cagat train --resume {run.directory.path}" if started else ""
        typer.echo(f"Interrupted.{hint}", err=True)
        return INTERRUPTED
    if world.size > 1 and run.directory.parallel.exists():
        _print_parallel(json.loads(run.directory.parallel.read_text(encoding="utf-8")))
    if as_json:
        typer.echo(json.dumps(asdict(result)))
    else:
        _print(result)
    if result.test_accuracy is None:
        typer.echo(f"Interrupted. Go on with: cagat train --resume {result.run_dir}", err=True)
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
    split = "the graph's own split" if labels is None else f"{labels} labels per class"
    test = "" if result.test_accuracy is None else f"test accuracy {100 * result.test_accuracy:.1f} %, "
    typer.echo(
        f"{result.model} on {result.dataset}, {split}, seed {result.seed}: "
        f"{test}validation accuracy {100 * result.val_accuracy:.1f} %\n"
        f"{result.epochs} epochs in {result.seconds:.1f} s, the best was epoch {result.best_epoch}\n"
        f"The run is in {result.run_dir}"
    )
