"""TensorBoard's event files, for those who want them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cagat.errors import CagatError
from cagat.training.trainer import Epoch


class Scalars:
    """Writes losses and accuracy where TensorBoard finds them, or nowhere.

    Args:
        writer: TensorBoard's writer, or ``None``.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    @classmethod
    @contextmanager
    def open(cls, directory: Path | None, epochs_done: int) -> "Iterator[Scalars]":
        """Write to this directory, and let what it says about epochs not done yet be forgotten.

        Raises:
            CagatError: TensorBoard is wanted, but not installed.
        """
        if directory is None:
            yield cls(None)
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise CagatError(
                "--tensorboard needs the package tensorboard. Install it with: pip install 'cagat[tensorboard]'"
            ) from error
        writer = SummaryWriter(str(directory), purge_step=epochs_done + 1)
        try:
            yield cls(writer)
        finally:
            writer.close()

    def add(self, epoch: Epoch) -> None:
        """Write an epoch."""
        if self._writer is not None:
            self._writer.add_scalar("loss/train", epoch.loss, epoch.number)
            self._writer.add_scalar("loss/val", epoch.val_loss, epoch.number)
            if not math.isnan(epoch.val_accuracy):
                self._writer.add_scalar("accuracy/val", epoch.val_accuracy, epoch.number)
