"""The state of a run between two of its lives."""

import logging
import math
import time
from pathlib import Path
from typing import Any

import torch

from cagat import __version__
from cagat.errors import CagatError, DamagedFileError
from cagat.files import disk_errors
from cagat.settings import TrainConfig
from cagat.training.checkpoint import load_checkpoint, previous, save_checkpoint
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trainer import Trainer
from cagat.training.trainer_state import check_state

_logger = logging.getLogger(__name__)

# At most this share of the time is spent on saving.
_SAVING_SHARE = 0.05

# When a run ends may be changed when it is resumed; the graph is known by its digest, wherever it lies.
_MAY_CHANGE = {"epochs", "patience", "tensorboard", "data_dir", "dataset"}

_LONGEST_TEXT = 10_000


class SavedState:
    """Saves and loads the state of a run, and knows when it is time to save again.

    Args:
        directory: Of the run.
        config: Of the run; what its bits depend on may not change.
        graph: The digest of what it is trained on.
    """

    def __init__(self, directory: RunDirectory, config: TrainConfig, graph: str) -> None:
        self.seconds = 0.0
        self.epoch = 0
        self._directory = directory
        self._decisive = {key: value for key, value in config.values().items() if key not in _MAY_CHANGE}
        self._graph = graph
        self._saved_at = time.perf_counter()
        self._took = 0.0
        self._last_is_bad = False

    def due(self, every: float) -> bool:
        """Whether so many seconds have passed, or more where saving would else take too large a share of the time."""
        wait = every and max(every, self._took / _SAVING_SHARE)
        return time.perf_counter() - self._saved_at > wait

    def save(self, trainer: Trainer, seconds: float) -> None:
        """Save the state; the state before it is kept, too."""
        started = time.perf_counter()
        if self._last_is_bad:
            # It must not take the place of the good one before it.
            with disk_errors(self._directory.checkpoint):
                self._directory.checkpoint.unlink(missing_ok=True)
            self._last_is_bad = False
        state = {
            "trainer": trainer.state_dict(),
            "config": self._decisive,
            "graph": self._graph,
            "seconds": seconds,
            "versions": _versions(),
        }
        save_checkpoint(self._directory.checkpoint, state)
        self.seconds, self.epoch = seconds, len(trainer.history)
        self._saved_at = time.perf_counter()
        self._took = self._saved_at - started

    def load(self, trainer: Trainer) -> bool:
        """Put a trainer into the state that was saved last, if there is one.

        Raises:
            RunError: The configuration or the graph is not that of the saved state.
            DamagedFileError: Neither the last state nor the one before it can be read, or is one of this run.
        """
        path = self._directory.checkpoint
        if not path.exists() and not previous(path).exists():
            if self._directory.config.exists():
                _logger.warning("%s: there is no checkpoint, so the run starts from the beginning.", path)
            return False
        try:
            self._load(path, trainer)
        except DamagedFileError as error:
            if not previous(path).exists():
                raise
            self._load(previous(path), trainer)
            self._last_is_bad = True
            _logger.warning("%s Going on from the one before it, %s.", error, previous(path).name)
        return True

    def _load(self, path: Path, trainer: Trainer) -> None:
        """Put the trainer into the state of a file, or raise: a seal says only that the file is as it was sealed."""
        state = load_checkpoint(path)
        try:
            versions = _flat("versions", state["versions"])
            self._require_same(_flat("config", state["config"]), state["graph"])
            seconds = state["seconds"]
            if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
                raise ValueError("the seconds it took are no number")
            check_state(state["trainer"], trainer)
            trainer.load_state_dict(state["trainer"])
        except CagatError:
            raise
        except Exception as error:  # Whatever another form than ours makes torch and Python raise.
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            raise DamagedFileError(
                f"{path}: is no checkpoint of this run ({reason}). Put the right one back, or start a new run: "
                "cagat train --config CONFIG --out OTHER"
            ) from error
        if versions != _versions():
            _logger.warning("The run was started with %s: bits may differ from here on.", versions)
        self.seconds, self.epoch = seconds, len(trainer.history)

    def _require_same(self, config: dict[str, Any], graph: str) -> None:
        for key in self._decisive | dict.fromkeys(config):
            value, was = self._decisive.get(key), config.get(key)
            if value != was:
                raise RunError(
                    f"{self._directory.config}: {key} is {value!r} now, but was {was!r} when the run was started. Put "
                    "it back, or start a new run: cagat train --config CONFIG --out OTHER"
                )
        if graph != self._graph:
            raise RunError(
                f"{self._directory.path}: the graph is not the one that the run was started with. Bring that back, or "
                "start a new run."
            )


def _flat(name: str, values: Any) -> dict[str, Any]:
    """The values, if they are single numbers and texts: others could be so large that printing them never ends."""
    if not isinstance(values, dict):
        raise TypeError(f"{name} is a {type(values).__name__}")
    for value in (*values, *values.values()):
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise TypeError(f"{name} holds a {type(value).__name__}")
        if isinstance(value, str) and len(value) > _LONGEST_TEXT:
            raise ValueError(f"{name} holds a text of {len(value)} characters")
    return values


def _versions() -> dict[str, str]:
    return {"cagat": __version__, "torch": str(torch.__version__)}
