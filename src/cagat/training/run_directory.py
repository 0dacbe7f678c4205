"""The directory of a run."""

import contextlib
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cagat.data.encoding import TableEncoder
from cagat.errors import CagatError, DamagedFileError
from cagat.files import directory_lock, read_bounded, remove_leftovers
from cagat.training.trainer import Epoch

_LARGEST_METRICS = 2**26  # Half a million epochs.
_LARGEST_ENCODER = 2**30


class RunError(CagatError):
    """A run directory cannot be used as it was meant to be."""


class RunDirectory:
    """Where the files of a run are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.jsonl"
        self.checkpoint = path / "checkpoint.safetensors"
        self.previous_checkpoint = path / "checkpoint.previous.safetensors"
        self.model = path / "model.safetensors"
        self.model_checksum = path / "model.safetensors.sha256"
        self.predictions = path / "predictions.csv"
        self.out_of_fold = path / "out_of_fold.csv"
        self.curves = path / "curves.png"
        self.reliability = path / "reliability.png"
        self.parallel = path / "parallel.json"
        self.encoder = path / "encoder.skops"
        self.result = path / "result.json"
        self.tensorboard = path / "tensorboard"

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that a run writes again and again or at its end."""
        written_at_the_end = (self.model, self.predictions, self.out_of_fold, self.curves, self.parallel, self.result)
        return (self.config, self.encoder, self.metrics, self.checkpoint, *written_at_the_end)

    def require_free(self) -> None:
        """Raise unless a new run can be put here without overwriting anything."""
        if self.config.exists():
            raise RunError(
                f"{self.path}: already holds a run. Continue it: cagat train --resume {self.path}. Or choose another "
                "--out."
            )
        for path in self.files:
            if path.exists():
                raise RunError(f"{path}: already exists, and a run would overwrite it. Choose another --out.")

    def require_readable(self) -> None:
        """Raise if an older version wrote the run, whose checkpoints are pickles."""
        if (old := self.path / "checkpoint.pt").exists() and not self.checkpoint.exists():
            raise RunError(
                f"{old}: is from an older version of cagat, whose runs this one cannot read. Use that version, or "
                f"train again: cagat train --config {self.config} --out OTHER"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other trainings out of the directory; the lock of a process that was killed is free."""
        existed = self.path.exists()
        with directory_lock(self.path):
            for path in self.files:
                remove_leftovers(path)
            try:
                yield
            finally:
                if not existed and not self.config.exists():
                    # Nothing came of it, so nothing stays.
                    with contextlib.suppress(OSError):  # Windows removes no file that is open, and this one is.
                        (self.path / ".lock").unlink(missing_ok=True)
                        self.path.rmdir()

    def read_encoder(self) -> TableEncoder | None:
        """What encoded the table of features that the run is trained on; ``None`` if it was a table of numbers."""
        if not self.encoder.exists():
            return None
        try:
            return TableEncoder.from_bytes(read_bounded(self.encoder, _LARGEST_ENCODER), what=str(self.encoder))
        except OSError as error:
            raise RunError(f"{self.encoder}: cannot be read ({error.strerror}). Copy the run again.") from error
        except DamagedFileError as error:
            raise DamagedFileError(f"{error} Copy the run again, or train anew.") from error

    def history(self) -> list[Epoch]:
        """The epochs in `metrics.jsonl`; none if there is no such file."""
        if not self.metrics.exists():
            return []
        try:
            return [_epoch(json.loads(line)) for line in io.BytesIO(read_bounded(self.metrics, _LARGEST_METRICS))]
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else "is damaged"
            raise RunError(
                f"{self.metrics}: {reason}. Have it written again from the checkpoint: cagat train --resume {self.path}"
            ) from error


def _epoch(values: dict[str, Any]) -> Epoch:
    numbers = (values[key] for key in ("loss", "val_loss", "val_accuracy"))
    return Epoch(int(values["epoch"]), *(math.nan if number is None else float(number) for number in numbers))


def metrics_line(epoch: Epoch) -> str:
    """The line of an epoch; without times, so that a resumed run writes the same bytes as an unbroken one."""
    # JSON has no word for what is not a number.
    loss, val_loss, val_accuracy = (None if math.isnan(number) else number for number in epoch[1:])
    return json.dumps({"epoch": epoch.number, "loss": loss, "val_loss": val_loss, "val_accuracy": val_accuracy}) + "\n"
