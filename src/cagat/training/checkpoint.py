"""Checkpoints: the state of a run, to go on from after an interruption."""

import logging
import time
from pathlib import Path
from typing import Any

import torch

from cagat import __version__
from cagat.errors import CagatError, DamagedFileError
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.settings import TrainConfig
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.trainer import Trainer

_logger = logging.getLogger(__name__)

# At most this share of the time is spent on saving.
_SAVING_SHARE = 0.05

# When a run ends may be changed when it is resumed; the graph is known by its digest, wherever it lies.
_MAY_CHANGE = {"epochs", "patience", "tensorboard", "data_dir", "dataset"}


class Checkpoints:
    """Saves and loads the state of a run, and knows when it is time to save again."""

    def __init__(self, directory: RunDirectory, config: TrainConfig, graph: str) -> None:
        self.seconds = 0.0
        self.epoch = 0
        self._directory = directory
        self._decisive = {key: value for key, value in config.values().items() if key not in _MAY_CHANGE}
        self._graph = graph
        self._saved_at = time.perf_counter()
        self._took = 0.0
        self._last_is_good = False

    def due(self, every: float) -> bool:
        """Whether so many seconds have passed, or more where saving would else take too large a share of the time."""
        wait = every and max(every, self._took / _SAVING_SHARE)
        return time.perf_counter() - self._saved_at > wait

    def save(self, trainer: Trainer, seconds: float) -> None:
        """Write a checkpoint whole or not at all, and keep the one before it under a second name."""
        started = time.perf_counter()
        tensors = {name: tensor.detach().cpu().numpy() for name, tensor in trainer.state_dict().items()}
        metadata = {"config": self._decisive, "graph": self._graph, "seconds": seconds, "versions": _versions()}
        # One that could not be loaded does not take the place of the good one before it.
        previous = self._directory.previous_checkpoint if self._last_is_good else None
        write_tensors(self._directory.checkpoint, tensors, metadata, previous)
        self._last_is_good = True
        self.seconds, self.epoch = seconds, len(trainer.history)
        self._saved_at = time.perf_counter()
        self._took = self._saved_at - started

    def load(self, trainer: Trainer) -> bool:
        """Put a trainer into the state that was saved last, if there is one."""
        path, previous = self._directory.checkpoint, self._directory.previous_checkpoint
        if not path.exists() and not previous.exists():
            if self._directory.config.exists():
                _logger.warning("%s: there is no checkpoint, so the run starts from the beginning.", path)
            return False
        try:
            self._load(path, trainer)
            self._last_is_good = True
        except DamagedFileError as error:
            if not previous.exists():
                raise
            self._load(previous, trainer)
            _logger.warning("%s Going on from the one before it, %s.", error, previous.name)
        return True

    def _load(self, path: Path, trainer: Trainer) -> None:
        tensors, found = read_tensors(path)
        try:
            self._require_same(found["config"], found["graph"])
            trainer.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
            self.seconds, self.epoch = float(found["seconds"]), len(trainer.history)
        except CagatError:
            raise
        except Exception as error:  # Whatever another form than ours makes torch and Python raise.
            reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            raise DamagedFileError(
                f"{path}: is no checkpoint of this run ({reason}). Put the right one back, or start a new run: "
                "cagat train --config CONFIG --out OTHER"
            ) from error
        if found.get("versions") != _versions():
            _logger.warning("The run was started with %s: bits may differ from here on.", found.get("versions"))

    def _require_same(self, config: dict[str, Any], graph: str) -> None:
        for key in self._decisive | dict.fromkeys(config):
            value, was = self._decisive.get(key), config.get(key)
            if was is None and value is not None:
                raise RunError(
                    f"{self._directory.config}: {key} is {value!r} now, but the run was started without it. If you "
                    "added it, remove it. Otherwise an earlier version of cagat started the run, which has no such "
                    "setting: use that version, or start a new run: cagat train --config CONFIG --out OTHER"
                )
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


def _versions() -> dict[str, str]:
    return {"cagat": __version__, "torch": str(torch.__version__)}
