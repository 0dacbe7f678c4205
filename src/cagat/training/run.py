"""A run from its configuration to its files, resumable at any moment."""

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from cagat import __version__
from cagat.data.loading import is_name
from cagat.models import create
from cagat.training.checkpoint import DamagedFileError, load_checkpoint, previous, save_checkpoint
from cagat.training.compute import chosen_device, computing
from cagat.training.config import TrainConfig
from cagat.training.config_file import config_text, read_config
from cagat.training.curves import draw_curves
from cagat.training.evaluation import Evaluation
from cagat.training.predictions import Predictions
from cagat.training.problem import Problem, inputs_for
from cagat.training.run_directory import RunDirectory, RunError, metrics_line
from cagat.training.scalars import Scalars
from cagat.training.trainer import DivergedError, Epoch, Trainer
from cagat.training.weights_file import Description, write_weights
from cagat.whole_file import disk_errors

_logger = logging.getLogger(__name__)

# At most this share of the time is spent on saving.
_SAVING_SHARE = 0.05


@dataclass(frozen=True)
class RunResult:
    """What a run found: the line that `cagat train --json` prints."""

    dataset: str
    model: str
    labels_per_class: int | None
    seed: int
    epochs: int
    best_epoch: int
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    seconds: float
    run_dir: str


class Run:
    """A training with its directory.

    Make one with :meth:`start` or :meth:`resume`, then call :meth:`train`.

    Args:
        directory: Where its files are.
        config: What it computes, with nothing left open.

    Attributes:
        save_every: Seconds between two checkpoints, or more where saving would else take too large a share of the time;
            0 for a checkpoint after every epoch.
    """

    def __init__(self, directory: RunDirectory, config: TrainConfig) -> None:
        self.save_every = 2.0
        self.directory = directory
        self.config = config
        self._seconds = 0.0
        self._saved_at = time.perf_counter()
        self._save_took = 0.0

    @classmethod
    def start(cls, config: TrainConfig, out: Path) -> "Run":
        """A new run in a directory that holds no other."""
        directory = RunDirectory(out)
        if directory.config.exists():
            raise RunError(
                f"{out}: holds a run already. Go on with it: cagat train --resume {out}. Or choose another --out."
            )
        config = replace(
            config,
            dataset=_wherever_started(config.dataset),
            data_dir=config.data_dir and str(Path(config.data_dir).absolute()),
            device=chosen_device(config.device),
            threads=config.threads or torch.get_num_threads(),
        )
        return cls(directory, config)

    @classmethod
    def resume(cls, path: Path, epochs: int | None = None, patience: int | None = None) -> "Run":
        """The run of a directory, to go on from its last checkpoint, perhaps for longer than was planned."""
        directory = RunDirectory(path)
        if not directory.config.exists():
            raise RunError(f"{path}: there is no run to resume. Start one with: cagat train --out {path}")
        values = read_config(directory.config)
        changed = {key: value for key, value in (("epochs", epochs), ("patience", patience)) if value is not None}
        return cls(directory, TrainConfig.from_values(values | changed))

    def train(
        self,
        on_epoch: Callable[[Epoch, Trainer], None] | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> RunResult:
        """Train until the end or until it should stop, and write the files.

        A run that was stopped has no `result.json`, and can be resumed as one that was killed.

        Args:
            on_epoch: Called after each epoch.
            should_stop: Asked after each epoch whether to stop for now.

        Raises:
            CagatError: The graph, the model or the directory cannot be used, or the loss is no longer a number.
        """
        config = self.config
        assert config.threads is not None
        with self.directory.locked(), computing(config.threads, config.deterministic):
            problem = Problem.load(config)
            self.config = replace(config, labels=problem.labels, val_labels=problem.val_labels)
            trainer = self._trainer(problem)
            # Only now: a directory with a configuration holds a run that can be resumed.
            self.directory.write_text(self.directory.config, _config_text(self.config))
            self._load_checkpoint(trainer, problem)
            finished = self.directory.read_result()
            if finished is not None and trainer.finished:
                return RunResult(**finished | {"run_dir": str(self.directory.path)})
            self.directory.result.unlink(missing_ok=True)
            with self._scalars(len(trainer.history)) as scalars:
                try:
                    self._go_on(trainer, problem, scalars, on_epoch, should_stop)
                except DivergedError as error:
                    raise DivergedError(f"{error} The last good checkpoint is {self.directory.checkpoint}.") from error
            return self._finish(trainer, problem)

    def _trainer(self, problem: Problem) -> Trainer:
        config = self.config
        assert config.device is not None
        assert config.feature_norm is not None
        torch.manual_seed(config.seed)
        graph, device = problem.graph, torch.device(config.device)
        model = create(config.model, graph.x.shape[1], len(graph.class_names), **config.hyperparameters()).to(device)
        inputs = inputs_for(model, graph, config.feature_norm, device)
        train, val = (problem.part(name).to(device) for name in ("train", "val"))
        return Trainer(model, inputs, train, val, config.fit_options())

    def _go_on(
        self,
        trainer: Trainer,
        problem: Problem,
        scalars: Scalars,
        on_epoch: Callable[[Epoch, Trainer], None] | None,
        should_stop: Callable[[], bool],
    ) -> None:
        fingerprint = problem.fingerprint()
        self._save(trainer, fingerprint)
        started, before = time.perf_counter(), self._seconds
        with disk_errors(self.directory.metrics), self.directory.metrics.open("a", encoding="utf-8") as metrics:
            while not trainer.finished:
                epoch = trainer.run_epoch()
                metrics.write(metrics_line(epoch))
                metrics.flush()
                scalars.add(epoch)
                self._seconds = before + time.perf_counter() - started
                if on_epoch is not None:
                    on_epoch(epoch, trainer)
                if should_stop():
                    break
                wait = self.save_every and max(self.save_every, self._save_took / _SAVING_SHARE)
                if time.perf_counter() - self._saved_at > wait:
                    self._save(trainer, fingerprint)
        self._save(trainer, fingerprint)

    def _save(self, trainer: Trainer, fingerprint: str) -> None:
        started = time.perf_counter()
        state = {
            "trainer": trainer.state_dict(),
            "config": _decisive(self.config),
            "graph": fingerprint,
            "seconds": self._seconds,
            "versions": _versions(),
        }
        save_checkpoint(self.directory.checkpoint, state)
        self._saved_at = time.perf_counter()
        self._save_took = self._saved_at - started

    def _load_checkpoint(self, trainer: Trainer, problem: Problem) -> None:
        path = self.directory.checkpoint
        if not path.exists():
            self.directory.rewrite_metrics([])
            return
        state = self._read_checkpoint(path)
        for key, value in _decisive(self.config).items():
            if state["config"].get(key) != value:
                raise RunError(
                    f"{self.directory.config}: {key} is {value!r} now, but was {state['config'].get(key)!r} when the "
                    "run was started. Put it back, or start a new run with: cagat train --config CONFIG --out OTHER"
                )
        if state["graph"] != problem.fingerprint():
            raise RunError(
                f"{self.config.dataset}: the graph is not the one that the run in {self.directory.path} was started "
                "with. Bring that back, or start a new run."
            )
        if state["versions"] != _versions():
            _logger.warning("The run was started with %s: bits may differ from here on.", state["versions"])
        trainer.load_state_dict(state["trainer"])
        self._seconds = state["seconds"]
        self.directory.rewrite_metrics(trainer.history)

    def _read_checkpoint(self, path: Path) -> dict[str, Any]:
        try:
            return load_checkpoint(path)
        except DamagedFileError as error:
            if previous(path).exists():
                state = load_checkpoint(previous(path))
                _logger.warning("%s Going on from the one before it, %s.", error, previous(path).name)
                return state
            raise

    @contextlib.contextmanager
    def _scalars(self, epochs_done: int) -> Iterator[Scalars]:
        scalars = Scalars.open(self.directory.tensorboard if self.config.tensorboard else None, epochs_done)
        try:
            yield scalars
        finally:
            scalars.close()

    def _finish(self, trainer: Trainer, problem: Problem) -> RunResult:
        """Write the files of the best weights; those of a run that goes on later are written again then."""
        over = trainer.finished
        trainer.finish()
        config, graph, best = self.config, problem.graph, trainer.best
        assert best is not None
        assert problem.split is not None
        with torch.no_grad():
            logits = trainer.model(*trainer.inputs).cpu()
        # From here on, and nowhere before, the labels of test nodes are looked at.
        found = Evaluation.of(logits, graph, problem.split).accuracy
        val = problem.part("val")
        result = RunResult(
            dataset=config.dataset,
            model=config.model,
            labels_per_class=problem.labels,
            seed=config.seed,
            epochs=len(trainer.history),
            best_epoch=best.number,
            val_loss=F.cross_entropy(logits[val.nodes], val.classes).item(),
            val_accuracy=found["val"],
            test_accuracy=found["test"],
            seconds=round(self._seconds, 3),
            run_dir=str(self.directory.path),
        )
        write_weights(self.directory.model, trainer.model, _description(config, problem))
        Predictions.from_logits(logits, graph, graph.class_names, problem.split).write(self.directory.predictions)
        draw_curves(trainer.history, best.number, self.directory.curves)
        if over:
            self.directory.write_text(self.directory.result, json.dumps(asdict(result)) + "\n")
        return result


def _wherever_started(dataset: str) -> str:
    """The name of a graph, or its path such that it is found from any directory."""
    return str(Path(dataset).absolute()) if not is_name(dataset) and Path(dataset).exists() else dataset


def _description(config: TrainConfig, problem: Problem) -> Description:
    assert config.feature_norm is not None
    return Description(
        model=config.model,
        hyperparameters=config.hyperparameters(),
        in_channels=problem.graph.x.shape[1],
        classes=list(problem.graph.class_names),
        features=list(problem.graph.feature_names) or None,
        feature_norm=config.feature_norm,
    )


def _decisive(config: TrainConfig) -> dict[str, Any]:
    """What may not change when a run is resumed: all that its bits depend on. When it ends may."""
    may_change = {"epochs", "patience", "tensorboard", "data_dir", "dataset"}
    return {key: value for key, value in config.values().items() if key not in may_change}


def _config_text(config: TrainConfig) -> str:
    head = f"The whole configuration of this run, written by cagat {__version__}; see: cagat train --help"
    return config_text(config.values(), (head,))


def _versions() -> dict[str, str]:
    return {"cagat": __version__, "torch": str(torch.__version__)}
