"""The directory of a run."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from cagat.errors import CagatError
from cagat.training.trainer import Epoch
from cagat.whole_file import disk_errors, written_whole


class RunError(CagatError):
    """A run directory cannot be used as it was meant to be."""


class RunDirectory:
    """Where the files of a run are.

    Args:
        path: The directory; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.jsonl"
        self.checkpoint = path / "checkpoint.pt"
        self.model = path / "model.safetensors"
        self.predictions = path / "predictions.csv"
        self.curves = path / "curves.png"
        self.result = path / "result.json"
        self.tensorboard = path / "tensorboard"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other trainings out of the directory; the lock of a process that was killed is free."""
        lock = filelock.FileLock(self.path / ".lock", timeout=0)
        existed = self.path.exists()
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except filelock.Timeout:
                raise RunError(
                    f"{self.path}: another training is at work here. Wait for it, or choose another --out."
                ) from None
        try:
            for leftover in self.path.glob(".*.part"):
                leftover.unlink(missing_ok=True)
            yield
        finally:
            lock.release()
            if not existed and not self.config.exists():
                # Nothing came of it, so nothing stays.
                (self.path / ".lock").unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    self.path.rmdir()

    def write_text(self, path: Path, text: str) -> None:
        """Write one of the files, whole."""
        written_whole(path, lambda stream: stream.write(text.encode()))

    def rewrite_metrics(self, history: list[Epoch]) -> None:
        """Make the file of metrics say just this: a run that was killed may have got further than its checkpoint."""
        self.write_text(self.metrics, "".join(map(metrics_line, history)))

    def read_result(self) -> dict[str, Any] | None:
        """What the finished run found; nothing if it is not finished."""
        if not self.result.exists():
            return None
        result: dict[str, Any] = json.loads(self.result.read_text())
        return result


def metrics_line(epoch: Epoch) -> str:
    """The line of an epoch; without times, so that a resumed run writes the same bytes as an unbroken one."""
    number, loss, val_loss, val_accuracy = epoch
    values = {"epoch": number, "loss": loss, "val_loss": val_loss, "val_accuracy": val_accuracy}
    return json.dumps(values) + "\n"
