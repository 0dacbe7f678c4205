"""A search for the best configuration, on validation nodes only."""

import logging
import math
import multiprocessing
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from cagat.errors import CagatError, ConfigError
from cagat.experiments.cell import Cell, known_graph, validation_score
from cagat.experiments.records import Records
from cagat.experiments.search_space import SearchSpace
from cagat.experiments.worker_process import settle_as_worker
from cagat.files import disk_errors
from cagat.models import card
from cagat.training import DivergedError, TrainConfig
from cagat.training.problem import graph_digest

if TYPE_CHECKING:
    import optuna

# The tables report the splits with smaller seeds.
FIRST_SEED = 100


@dataclass(frozen=True)
class TuneOptions:
    """What is searched, and how hard.

    Attributes:
        out: The directory of the search.
        model: The name of the model.
        datasets: The graphs.
        labels: Numbers of training nodes a class.
        splits: How many splits.
        first_seed: The seed of the first of them, at least 100; finalists are best judged on splits that the search has
            not seen.
        trials: How many configurations are tried in all, those of an earlier call included.
        epochs: The largest number of epochs of a fit.
        patience: How many epochs in a row may pass without a lower validation loss.
        jobs: How many processes work at once; results do not depend on it.
        seed: Of the search itself.
        space: A file with the search space; ``None`` for `configs/search.yaml`.
        finalists: The directory of an earlier search: nothing new is tried, but the best of its trials are judged
            again, on what is asked here.
        data_dir: Where published graphs are looked for.
    """

    out: Path
    model: str = "cagat"
    datasets: tuple[str, ...] = ("cora",)
    labels: tuple[int, ...] = (20,)
    splits: int = 3
    first_seed: int = FIRST_SEED
    trials: int = 50
    epochs: int = 10_000
    patience: int = 100
    jobs: int = 1
    seed: int = 0
    space: Path | None = None
    finalists: Path | None = None
    data_dir: str | None = None

    def cells(self) -> list[Cell]:
        """The fits of one trial, in the order in which they are done: the first split of every graph first."""
        seeds = range(self.first_seed, self.first_seed + self.splits)
        return [Cell(dataset, labels, seed) for seed in seeds for labels in self.labels for dataset in self.datasets]


@dataclass
class Search:
    """A search that can be interrupted at any moment: what was computed is kept, and not computed again.

    Attributes:
        options: What is searched.
        study: optuna's study.
    """

    options: TuneOptions
    study: "optuna.Study"
    _records: Records
    _space: SearchSpace
    _graphs: dict[str, str]

    @classmethod
    def open(cls, options: TuneOptions) -> "Search":
        """Start a search, or go on with that of the directory.

        Raises:
            CagatError: optuna is missing, or the directory holds the search for something else.
        """
        try:
            import optuna
        except ImportError as error:
            raise CagatError(
                "cagat tune needs the package optuna. Install it with: pip install 'cagat[tune]'"
            ) from error
        optuna.logging.set_verbosity(logging.WARNING)
        space = SearchSpace.of(options.model, options.space)
        graphs = {name: graph_digest(graph, graph.y) for name, graph in _loaded(options)}
        asked = {
            "model": options.model,
            "datasets": list(options.datasets),
            "labels": list(options.labels),
            "splits": options.splits,
            "first_seed": options.first_seed,
            "epochs": options.epochs,
            "patience": options.patience,
            "space": space.ranges,
            "graphs": graphs,
        }
        with disk_errors(options.out):
            options.out.mkdir(parents=True, exist_ok=True)
        # A trial is given up after its first fits if it is worse than half of the trials were then.
        pruner = optuna.pruners.MedianPruner(n_startup_trials=10, n_warmup_steps=len(options.cells()) // 3)
        with _database_errors(options.out):
            study = optuna.create_study(
                study_name="cagat",
                storage=_database(options.out),
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.NopPruner() if options.finalists else pruner,
            )
            return cls._of(options, study, asked, space)

    @classmethod
    def _of(cls, options: TuneOptions, study: "optuna.Study", asked: dict[str, Any], space: SearchSpace) -> "Search":
        import optuna

        known = {"first_seed": FIRST_SEED} | study.user_attrs.get("asked", asked)
        for key, value in asked.items():
            if known[key] != value:
                raise ConfigError(
                    f"{options.out}: holds a search with {key}={known[key]}, not {value}. Choose another --out."
                )
        study.set_user_attr("asked", asked)
        # The state of a sampler is not stored, so the number of trials takes part in its seed: a search that is resumed
        # does not try again what it tried before.
        study.sampler = optuna.samplers.TPESampler(seed=options.seed + len(study.trials), multivariate=True)
        search = cls(options, study, Records(options.out / "fits.jsonl"), space, asked["graphs"])
        search._prepare()
        return search

    def run(self, on_fit: Callable[[int, int], None], on_trial: Callable[[], None]) -> None:
        """Try configurations until there are enough.

        Args:
            on_fit: Called with the fits done and the fits of this trial after each of them.
            on_trial: Called after each trial.
        """
        import optuna

        with _database_errors(self.options.out), self._workers() as workers:
            while self.finished < self.options.trials:
                trial = self.study.ask()
                try:
                    score = self._score(trial, workers, on_fit)
                except (optuna.TrialPruned, ConfigError, DivergedError) as error:
                    trial.set_user_attr("reason", str(error))
                    self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                else:
                    self.study.tell(trial, score)
                on_trial()

    @property
    def finished(self) -> int:
        """How many configurations have been tried, those given up included."""
        return sum(trial.state.is_finished() and trial.state.name != "FAIL" for trial in self.study.trials)

    def commonest_reason(self) -> str:
        """Why most of the trials that were given up were."""
        reasons = Counter(trial.user_attrs.get("reason", "no reason is known") for trial in self.study.trials)
        return reasons.most_common(1)[0][0] if reasons else "none was tried"

    def best(self) -> "optuna.trial.FrozenTrial | None":
        """The trial with the highest mean validation accuracy, of those that did all fits."""
        return next(iter(_ranked(self.study)), None)

    def _prepare(self) -> None:
        """Let the presets be tried first, and what a kill left unfinished again."""
        import optuna

        if not self.study.trials:
            for values in self._first_tried():
                self.study.enqueue_trial(self._space.contains(values))
        for trial in self.study.trials:
            if trial.state == optuna.trial.TrialState.RUNNING:
                self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
                self.study.enqueue_trial(trial.params)

    def _first_tried(self) -> Iterable[Mapping[str, Any]]:
        """The presets of the model, or the finalists."""
        earlier = self.options.finalists
        if earlier is None:
            return card(self.options.model).presets.values()
        finalists = [trial.params for trial in _ranked(_earlier_study(earlier))]
        if len(finalists) < self.options.trials:
            raise ConfigError(f"{earlier}: only {len(finalists)} trials did all their fits. Lower --trials to that.")
        return finalists[: self.options.trials]

    def _score(self, trial: "optuna.Trial", workers: ProcessPoolExecutor, on_fit: Callable[[int, int], None]) -> float:
        """The mean validation accuracy over all cells."""
        import optuna

        options, cells = self.options, self.options.cells()
        values = {"model": options.model, "epochs": options.epochs, "patience": options.patience}
        values |= self._space.suggest(trial)
        TrainConfig.from_values(values)
        asked = [{**values, **cell._asdict(), "graph": self._graphs[cell.dataset]} for cell in cells]
        found: dict[int, dict[str, Any]] = {}
        running: dict[Future[dict[str, Any]], int] = {}
        ahead = iter(range(len(cells)))
        for step in range(len(cells)):
            while step not in found:
                # Keep every worker busy, but not far ahead: the trial may be given up.
                while len(running) < options.jobs and (number := next(ahead, None)) is not None:
                    if (known := self._records.get(asked[number])) is not None:
                        found[number] = known
                    else:
                        running[workers.submit(validation_score, values, cells[number], options.data_dir)] = number
                if step in found:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    number = running.pop(future)
                    found[number] = _result(future)
                    self._records.add(asked[number], found[number])
            on_fit(step + 1, len(cells))
            mean = statistics.fmean(found[number]["val_accuracy"] for number in range(step + 1))
            trial.report(mean, step)
            if step + 1 < len(cells) and trial.should_prune():
                raise optuna.TrialPruned(f"given up after {step + 1} of {len(cells)} fits")
        return mean

    @contextmanager
    def _workers(self) -> Iterator[ProcessPoolExecutor]:
        others = set(multiprocessing.active_children())
        # Spawned, not forked: torch's threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        workers = ProcessPoolExecutor(self.options.jobs, mp_context=context, initializer=settle_as_worker)
        try:
            yield workers
        finally:
            # After an interrupt nobody wants to wait for the fits that are under way; they are done again.
            workers.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.kill()


def _database(directory: Path) -> str:
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(directory / "study.db")).render_as_string(hide_password=False)


@contextmanager
def _database_errors(directory: Path) -> Iterator[None]:
    """Turn what is wrong with the database of a search, or with its disk, into words."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        reason: BaseException = error
        while isinstance(reason.__cause__, Exception):
            reason = reason.__cause__
        raise CagatError(
            f"{directory / 'study.db'}: cannot be read or written ({str(reason).splitlines()[0]}). Make room if the "
            "disk is full; if the file is damaged, choose another --out."
        ) from error


def _earlier_study(directory: Path) -> "optuna.Study":
    import optuna

    if not (directory / "study.db").is_file():
        raise ConfigError(
            f"{directory}: holds no search (there is no study.db). Name the --out of an earlier cagat tune."
        )
    with _database_errors(directory):
        return optuna.load_study(study_name="cagat", storage=_database(directory))


def _ranked(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """The trials that did all fits, the best first."""
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    return sorted(complete, key=lambda trial: trial.value or -math.inf, reverse=True)


def _loaded(options: TuneOptions) -> Iterator[tuple[str, Data]]:
    return ((name, known_graph(name, options.data_dir)) for name in options.datasets)


def _result(future: Future[dict[str, Any]]) -> dict[str, Any]:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise CagatError(
            "A worker was killed, perhaps for want of memory. What was done is kept: give the same command again, "
            "perhaps with fewer --jobs."
        ) from error
