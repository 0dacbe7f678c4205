"""A training while it goes on, and what it found."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cagat.training import Epoch, Run, RunResult, Trainer

# Where there is no terminal, a line now and then says that the run is alive.
_SECONDS_BETWEEN_LINES = 10.0
_INTERRUPTED = 130


class _Interruption:
    """Whether the user, or the system, wants the run to stop."""

    def __init__(self) -> None:
        self.wanted = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the first Ctrl-C or SIGTERM for a wish; the second one is obeyed at once."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: Any) -> None:
            self.wanted = True
            typer.echo("Stopping after this epoch; again to stop at once.", err=True)
            for known, handler in before.items():
                signal.signal(known, handler)

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Display:
    """Shows epochs: on a terminal as a bar with the time left, elsewhere as lines."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn(),
            TextColumn("left, at the least:"), TimeRemainingColumn(),
        )  # fmt: skip
        self.bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._console = console
        self._task = self.bars.add_task("Loading the graph", total=None)
        self._shown_at = time.perf_counter()

    def show(self, epoch: Epoch, trainer: Trainer) -> None:
        """Show an epoch."""
        text = (
            f"epoch {epoch.number}: loss {epoch.loss:.4f}, validation loss {epoch.val_loss:.4f}, "
            f"validation accuracy {100 * epoch.val_accuracy:.1f} %"
        )
        if self._console.is_terminal:
            # Training ends at this epoch if validation improves no more, and later if it does.
            self.bars.update(self._task, description=text, completed=epoch.number, total=trainer.last_epoch)
        elif time.perf_counter() - self._shown_at > _SECONDS_BETWEEN_LINES:
            self._shown_at = time.perf_counter()
            self._console.print(text, soft_wrap=True)


def run_and_show(run: Run, as_json: bool) -> None:
    """Train, with progress on standard error and the result on standard output.

    Raises:
        typer.Exit: With code 130 if the run was interrupted.
    """
    interruption, display = _Interruption(), _Display(Console(stderr=True))
    with interruption.listening(), display.bars:
        result = run.train(display.show, lambda: interruption.wanted)
    if as_json:
        typer.echo(json.dumps(asdict(result)))
    else:
        _print(result)
    # A wish that came with the last epoch stopped nothing.
    if interruption.wanted and run.directory.read_result() is None:
        typer.echo(f"Interrupted. Go on with: cagat train --resume {result.run_dir}", err=True)
        raise typer.Exit(_INTERRUPTED)


def _print(result: RunResult) -> None:
    split = "the graph's own split" if result.labels_per_class is None else f"{result.labels_per_class} labels a class"
    typer.echo(
        f"{result.model} on {result.dataset}, {split}, seed {result.seed}: "
        f"test accuracy {100 * result.test_accuracy:.1f} %, validation accuracy {100 * result.val_accuracy:.1f} %\n"
        f"{result.epochs} epochs in {result.seconds:.1f} s, the best was epoch {result.best_epoch}\n"
        f"The run is in {result.run_dir}"
    )
