"""A run from its configuration to its files, resumable at any moment."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from cagat import __version__
from cagat.data.loading import is_name
from cagat.distributed import World
from cagat.errors import ConfigError
from cagat.files import WriteError, atomic_write, disk_errors
from cagat.settings import TrainConfig
from cagat.training.checkpoint import Checkpoints
from cagat.training.compute import chosen_device, computing
from cagat.training.config_file import config_text, read_config
from cagat.training.cross_fit import CrossFit
from cagat.training.make_trainer import make_trainer
from cagat.training.outputs import RunResult, finish, read_result, tensorboard_log, write_outputs
from cagat.training.parted_problem import hand_over, load_problem
from cagat.training.problem import Problem
from cagat.training.run_directory import RunDirectory, RunError, metrics_line
from cagat.training.trainer import DivergedError, Epoch, Trainer

_logger = logging.getLogger(__name__)

_HEAD = f"The whole configuration of this run, written by cagat {__version__}; see: cagat train --help"


class Run:
    """A training with its directory.

    Make one with :meth:`start` or :meth:`resume`, then call :meth:`train`.

    Args:
        directory: Where its files are.
        config: What it computes, with nothing left open.
        resumed: Whether the directory may hold a run already.

    Attributes:
        save_every: Seconds between two checkpoints, or more where saving would else take too large a share of the time;
            0 for a checkpoint after every epoch.
    """

    def __init__(self, directory: RunDirectory, config: TrainConfig, resumed: bool) -> None:
        self.save_every = 2.0
        self.directory = directory
        threads = config.threads or torch.get_num_threads()
        self.config = config.model_copy(update={"device": chosen_device(config.device), "threads": threads})
        self._resumed = resumed

    @classmethod
    def start(cls, config: TrainConfig, out: Path) -> "Run":
        """A new run in a directory that holds no other.

        Raises:
            RunError: The directory holds a run, or files that the run would overwrite.
        """
        directory = RunDirectory(out)
        directory.require_free()
        # Paths such that they are found from any directory.
        paths = {key: str(Path(path).absolute()) for key in ("data_dir", "columns") if (path := getattr(config, key))}
        if not is_name(config.dataset) and Path(config.dataset).exists():
            paths["dataset"] = str(Path(config.dataset).absolute())
        return cls(directory, config.model_copy(update=paths), resumed=False)

    @classmethod
    def resume(
        cls, path: Path, epochs: int | None = None, patience: int | None = None, tensorboard: bool | None = None
    ) -> "Run":
        """The run of a directory, to go on from its last checkpoint, perhaps for longer than was planned.

        Raises:
            RunError: There is no run.
            ConfigError: It shall be less patient than was planned.
        """
        directory = RunDirectory(path)
        directory.require_readable()
        if not directory.config.exists():
            raise RunError(f"{path}: there is no run to resume. Start one with: cagat train --out {path}")
        planned = TrainConfig.from_values(read_config(directory.config))
        wanted = {"epochs": epochs, "patience": patience, "tensorboard": tensorboard}
        if patience is not None and planned.patience is not None and patience < planned.patience:
            raise ConfigError(
                f"{path}: patience is {planned.patience} and can only be raised, but {patience} was asked for."
            )
        values = planned.values() | {key: value for key, value in wanted.items() if value is not None}
        return cls(directory, TrainConfig.from_values(values), resumed=True)

    def train(
        self,
        on_epoch: Callable[[Epoch, Trainer], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        world: World | None = None,
    ) -> RunResult:
        """Train until the end or until it should stop, and write the files.

        A run that was stopped has no `result.json`, and can be resumed as one that was killed.

        Args:
            on_epoch: Called after each epoch.
            should_stop: Asked after each epoch whether to stop for now.
            world: The processes that share the work, of which this is the first; the others
                :func:`~cagat.training.join_run`.

        Raises:
            CagatError: The graph, the model or the directory cannot be used, or the loss is no longer a number.
        """
        world = world or World()
        with self.directory.locked(), _computing(self.config, world) as device:
            if not self._resumed:
                self.directory.require_free()
            world.share(self.config.values())
            problem = load_problem(self.config, world, self.directory.read_encoder())
            self.config = self.config.model_copy(update=_drawn(problem))
            _logger.info("%s", problem.summary())
            trainer = make_trainer(self.config, problem, device, world)
            checkpoints = Checkpoints(self.directory, self.config, problem.fingerprint())
            loaded = checkpoints.load(trainer)
            if len(trainer.history) > trainer.options.epochs:
                raise ConfigError(
                    f"{self.directory.path}: {len(trainer.history)} epochs are done already, but "
                    f"epochs={trainer.options.epochs} was asked for. Ask for as many or more."
                )
            events = self.directory.tensorboard if self.config.tensorboard else None
            with tensorboard_log(events, len(trainer.history)) as log:
                # Only now, when all that can be refused has been: what has a configuration can be resumed.
                atomic_write(self.directory.config, config_text(self.config.values(), (_HEAD,)))
                if "encoder" in problem.graph and not self.directory.encoder.exists():
                    atomic_write(self.directory.encoder, problem.graph.encoder.to_bytes())
                result = read_result(self.directory, isinstance(trainer, CrossFit)) if trainer.finished else None
                _share_start(world, trainer, loaded, result is not None)
                # A run that was killed may have got further than its checkpoint.
                atomic_write(self.directory.metrics, "".join(map(metrics_line, trainer.history)))
                if result is not None:
                    return result
                self.directory.result.unlink(missing_ok=True)
                if not loaded:
                    checkpoints.save(trainer, 0.0)

                def stops_after(epoch: Epoch) -> bool:
                    log(epoch)
                    if on_epoch is not None:
                        on_epoch(epoch, trainer)
                    return world.any(should_stop())

                self._run_epochs(problem, trainer, checkpoints, stops_after)
            return write_outputs(self.directory, self.config, problem, trainer, checkpoints.seconds)

    def _run_epochs(
        self, problem: Problem, trainer: Trainer, checkpoints: Checkpoints, stops_after: Callable[[Epoch], bool]
    ) -> None:
        seconds = checkpoints.seconds
        started = time.perf_counter() - seconds
        try:
            with disk_errors(self.directory.metrics), self.directory.metrics.open("a", encoding="utf-8") as metrics:
                while not trainer.finished:
                    epoch = trainer.run_epoch()
                    metrics.write(metrics_line(epoch))
                    metrics.flush()
                    seconds = time.perf_counter() - started
                    if stops_after(epoch):
                        break
                    if checkpoints.due(self.save_every):
                        checkpoints.save(trainer, seconds)
            checkpoints.save(trainer, seconds)
        except WriteError as error:
            raise WriteError(
                f"{error} The checkpoint of epoch {checkpoints.epoch} is kept; when there is space, continue with: "
                f"cagat train --resume {self.directory.path}"
            ) from error
        except DivergedError as error:
            kept = f"The last good checkpoint, of epoch {checkpoints.epoch}, is {self.directory.checkpoint}"
            if trainer.best is not None:
                write_outputs(self.directory, self.config, problem, trainer, seconds)
                kept += f"; the weights of the best epoch, {trainer.best.number}, are in {self.directory.model}"
            raise DivergedError(f"{error} {kept}. Start anew with another --out.") from error


def join_run(world: World, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Take part in the :class:`Run` of the first process until it ends; files are left to that."""
    config = TrainConfig.from_values(world.share(None) or {})
    with _computing(config, world) as device:
        problem = load_problem(config, world)
        trainer = make_trainer(config, problem, device, world)
        if _share_start(world, trainer):
            return
        try:
            while not trainer.finished:
                trainer.run_epoch()
                if world.any(should_stop()):
                    break
        except DivergedError:  # The first process says so.
            if trainer.best is None:
                return
        finished = trainer.finished
        hand_over(problem, finish(trainer)[0], finished=finished)


def _drawn(problem: Problem) -> dict[str, Any]:
    """What was decided about the labels, so that a resumed run does not decide anew."""
    return {"protocol": problem.protocol, "labels": problem.labels, "val_labels": problem.val_labels}


@contextlib.contextmanager
def _computing(config: TrainConfig, world: World) -> Iterator[torch.device]:
    """Compute as a configuration says, on the device of this process."""
    assert config.threads is not None
    assert config.device is not None
    device = torch.device(world.device(config.device))
    gpus = [] if device.type == "cpu" else [device]
    # The caller's random numbers stay as they were, whatever is drawn meanwhile.
    with (
        computing(config.threads, config.deterministic),
        torch.random.fork_rng(devices=gpus, device_type=device.type),
    ):
        yield device


def _share_start(world: World, trainer: Trainer, loaded: bool = False, is_done: bool = False) -> bool:
    """Put the trainers of all processes into the state of the first; whether there is nothing left to do."""
    loaded, is_done = world.share((loaded, is_done))
    if loaded:
        state = world.share_tensors(trainer.state_dict() if world.is_first else {})
        if not world.is_first:
            trainer.load_state_dict(state)
    return is_done
