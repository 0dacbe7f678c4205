"""A search for the best configuration, on validation nodes only."""

import csv
import io
import json
import logging
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_geometric.data import Data

from cagat import configs
from cagat.data.loading import is_name
from cagat.errors import CagatError, ConfigError, DatasetError, nearest
from cagat.experiments.jobs import Task, cached_graph, reading, validation_scores
from cagat.experiments.records import Records, digest
from cagat.experiments.search_splits import labels_and_split, nodes_used
from cagat.experiments.workers import result_of, worker_pool
from cagat.files import atomic_write, read_bounded
from cagat.models import card
from cagat.settings import READING, SETTINGS, TRAINING, checked
from cagat.training import DivergedError, TrainConfig
from cagat.training.config_file import read_config
from cagat.training.problem import DEFAULT_LABELS, graph_digest

if TYPE_CHECKING:
    import optuna

_COLUMNS = ("trial", "state", "val_accuracy", "fits")
_LARGEST_BYTES = 2**26

Space = dict[str, dict[str, Any]]
"""For each key that a search may set `{choices: [...]}`, or `{low: ..., high: ..., log: ...}`."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """What is searched, and how hard: the options of `cagat tune`, which has their defaults and explains them."""

    out: Path
    model: str
    datasets: tuple[str, ...]
    labels: tuple[int | None, ...]  # None for what suits the graph.
    val_labels: int | None
    splits: int
    first_seed: int  # The tables report the splits with smaller seeds.
    trials: int
    epochs: int
    patience: int
    jobs: int
    seed: int
    space: Path | None
    finalists: Path | None
    data_dir: str | None
    given: Mapping[str, Any]  # How tables are read, and how classes weigh.

    def graph(self, name: str) -> Data:
        """A graph that is searched on."""
        return cached_graph(name, self.data_dir, reading(TrainConfig.from_values(self.given)))

    def tasks(self) -> list[Task]:
        """The fits of one trial, in the order in which they are done: the first split of every graph first."""
        seeds = range(self.first_seed, self.first_seed + self.splits)
        return [Task(*searched, seed) for seed in seeds for searched in self.searched()]

    def searched(self) -> list[tuple[str, int | None]]:
        """Every graph with every number of labels; without one, graphs with a name have the paper's 20."""
        default = {name: DEFAULT_LABELS if is_name(name) else None for name in self.datasets}
        pairs = [(name, count or default[name]) for count in self.labels for name in self.datasets]
        return list(dict.fromkeys(pairs))

    def given_splits(self) -> list[str]:
        """The graphs that come with a split."""
        return [name for name in self.datasets if hasattr(self.graph(name), "train_mask")]

    def nodes_used(self) -> list[str]:
        """What the search does with the labels of each graph, in sentences.

        Raises:
            DatasetError: A graph cannot be loaded, or has too few labelled nodes.
        """
        sentences = []
        for name, count in self.searched():
            graph = self.graph(name)
            try:
                sentences.append(nodes_used(graph, count, self.val_labels, self.splits))
            except DatasetError as error:
                raise DatasetError(f"{name}{'' if count is None else f' with --labels {count}'}: {error}") from error
        return sentences


class FinishedTrial(NamedTuple):
    """A line of `trials.csv`; ``value`` is ``None`` and ``reason`` says why if the trial was given up."""

    params: dict[str, Any]
    value: float | None
    fits: int
    reason: str


@dataclass
class Search:
    """A search that can be interrupted at any moment: what was computed is kept, and not computed again.

    `search.json` says what is searched, `fits.jsonl` has every fit, and `trials.csv` every finished trial. What a trial
    tries is a function of the seed and of the trials before it, so a trial that was killed is proposed again, and finds
    its fits.
    """

    options: TuneOptions
    study: "optuna.Study"
    _records: Records
    _space: Space
    _graphs: dict[str, str]
    _first: list[Mapping[str, Any]]

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
        first = list(card(options.model).presets.values()) if options.finalists is None else _finalists(options)
        if options.finalists is not None and options.space is None:
            space = _space_of_earlier(options.finalists, options.model)
        else:
            space = search_space(options.model, options.space)
        loaded = {name: options.graph(name) for name in options.datasets}
        graphs = {name: graph_digest(graph, *labels_and_split(graph)) for name, graph in loaded.items()}
        asked = {key: getattr(options, key) for key in ("model", "splits", "first_seed", "epochs", "patience", "seed")}
        labels = list(dict.fromkeys(count for _, count in options.searched()))
        asked |= {"datasets": list(options.datasets), "labels": labels, "val_labels": options.val_labels}
        asked["class_weight"] = TrainConfig.from_values(options.given).class_weight
        # Not its path, which may be another one next time.
        asked["finalists"] = digest({"first": first}) if options.finalists else None
        asked["preset"] = card(options.model).default  # It has what the space leaves open.
        _require_same_search(options.out, asked | {"space": space, "graphs": graphs})
        # A trial is given up after its first fits if it is worse than half of the trials were then.
        pruner = optuna.pruners.MedianPruner(n_startup_trials=10, n_warmup_steps=len(options.tasks()) // 3)
        study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.RandomSampler(),
            pruner=optuna.pruners.NopPruner() if options.finalists else pruner,
        )
        search = cls(options, study, Records(options.out / "fits.jsonl"), space, graphs, first)
        for trial in read_trials(options.out):
            search._replay(trial)
        return search

    def run(self, on_fit: Callable[[int, int], None], on_trial: Callable[[], None]) -> None:
        """Try configurations until there are enough; `on_fit` gets the fits of a trial that are done, and all."""
        import optuna

        with worker_pool(self.options.jobs) as workers:
            while (number := self.finished) < self.options.trials:
                self.study.sampler = optuna.samplers.TPESampler(seed=self.options.seed + number, multivariate=True)
                if number < len(self._first):
                    self.study.enqueue_trial(_contained(self._first[number], self._space))
                trial = self.study.ask(_distributions(self._space))
                try:
                    score = self._score(trial, workers, on_fit)
                except (optuna.TrialPruned, ConfigError, DivergedError) as error:
                    self._give_up(trial, str(error))
                else:
                    self.study.tell(trial, score)
                atomic_write(self.options.out / "trials.csv", self._trials_text())
                on_trial()

    @property
    def finished(self) -> int:
        """How many configurations have been tried, those given up included."""
        return len(self.finished_trials())

    def finished_trials(self) -> list["optuna.trial.FrozenTrial"]:
        """All trials but the one that is under way."""
        return [trial for trial in self.study.trials if trial.state.is_finished()]

    def commonest_reason(self) -> str:
        """Why most of the trials that were given up were."""
        reasons = Counter(trial.user_attrs.get("reason", "no reason is known") for trial in self.study.trials)
        return reasons.most_common(1)[0][0] if reasons else "none was tried"

    def best(self) -> "optuna.trial.FrozenTrial | None":
        """The trial with the highest mean validation accuracy, of those that did all fits."""
        complete = [trial for trial in self.study.trials if trial.state.name == "COMPLETE"]
        return max(complete, key=lambda trial: trial.value or -math.inf, default=None)

    def _replay(self, known: FinishedTrial) -> None:
        """Tell optuna about a trial of an earlier call."""
        self.study.enqueue_trial(known.params)
        trial = self.study.ask(_distributions(self._space))
        scores: list[float] = []
        for step, task in enumerate(self.options.tasks()[: known.fits]):
            if (found := self._records.get(self._asked(trial.params, task))) is None:
                break
            scores.append(found["val_accuracy"])
            trial.report(statistics.fmean(scores), step)
        if known.value is None:
            self._give_up(trial, known.reason)
        else:
            self.study.tell(trial, known.value)

    def _give_up(self, trial: "optuna.Trial", reason: str) -> None:
        import optuna

        trial.set_user_attr("reason", reason)
        self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)

    def _config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        options = self.options
        config = {"model": options.model, "epochs": options.epochs, "patience": options.patience}
        config |= {**options.given, **values}
        return config if options.val_labels is None else {**config, "val_labels": options.val_labels}

    def _asked(self, values: Mapping[str, Any], task: Task) -> dict[str, Any]:
        """What identifies a fit in the records; how its tables were read shows in the digest of the graph."""
        config = {key: value for key, value in self._config(values).items() if key not in READING}
        return {**config, **task._asdict(), "graph": self._graphs[task.dataset]}

    def _score(self, trial: "optuna.Trial", workers: ProcessPoolExecutor, on_fit: Callable[[int, int], None]) -> float:
        """The mean validation accuracy over all tasks."""
        import optuna

        tasks, config = self.options.tasks(), self._config(trial.params)
        TrainConfig.from_values(config)
        asked = [self._asked(trial.params, task) for task in tasks]
        running: dict[int, Future[dict[str, Any]]] = {}
        scores = []
        for step in range(len(tasks)):
            # Keep every worker busy, but not far ahead: the trial may be given up.
            for number in range(step, min(step + self.options.jobs, len(tasks))):
                if number not in running and self._records.get(asked[number]) is None:
                    arguments = (config, tasks[number], self.options.data_dir)
                    running[number] = workers.submit(validation_scores, *arguments)
            if (found := self._records.get(asked[step])) is None:
                found = result_of(running[step])
                self._records.add(asked[step], found)
            on_fit(step + 1, len(tasks))
            scores.append(found["val_accuracy"])
            trial.report(statistics.fmean(scores), step)
            if step + 1 < len(tasks) and trial.should_prune():
                raise optuna.TrialPruned(f"given up after {step + 1} of {len(tasks)} fits")
        return statistics.fmean(scores)

    def _trials_text(self) -> str:
        trials = self.finished_trials()
        keys = sorted({key for trial in trials for key in trial.params})
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([*_COLUMNS, *keys, "reason"])
        for trial in trials:
            row: list[Any] = [trial.number, trial.state.name.lower(), trial.value, len(trial.intermediate_values)]
            params = [trial.params.get(key) for key in keys]
            writer.writerow([*row, *params, trial.user_attrs.get("reason", "")])
        return lines.getvalue()


def search_space(model: str, path: Path | None = None) -> Space:
    """The part of a file, or of our own, that a model has use for.

    Raises:
        ConfigError: A range is empty or has values that the setting cannot have, or the model has no such setting.
    """
    ranges = read_config(Path(configs.__path__[0]) / "search.yaml" if path is None else path)
    training = [name for name, setting in SETTINGS.items() if setting.group == TRAINING and not setting.by_preset]
    known = [*card(model).settings, *training]
    for key in ranges:
        if path is not None and key not in known:
            raise ConfigError(f"{path}: {model} has no {key!r} to search.{nearest(str(key), known)}")
    return {key: _checked_range(key, span) for key, span in ranges.items() if key in known}


def _checked_range(key: str, span: Any) -> dict[str, Any]:
    if isinstance(span, dict) and set(span) == {"choices"}:
        if not isinstance(span["choices"], list) or not span["choices"]:
            raise ConfigError(f"The choices of {key} must be a list that is not empty, but are {span['choices']!r}.")
        return {"choices": [checked(key, value) for value in span["choices"]]}
    if not (isinstance(span, dict) and {"low", "high"} <= set(span) <= {"low", "high", "log"}):
        raise ConfigError(
            f"The search space of {key} must have choices, or low and high (and perhaps log), not {span!r}."
        )
    low, high, log = checked(key, span["low"]), checked(key, span["high"]), span.get("log", False)
    if SETTINGS[key].kind not in (int, float) or not low < high or not isinstance(log, bool) or (log and low <= 0):
        raise ConfigError(
            f"The search space of {key} must go from a smaller to a larger number (from above 0 with log: true), but "
            f"is {span!r}."
        )
    return {"low": low, "high": high, "log": log}


def _distributions(space: Space) -> "dict[str, optuna.distributions.BaseDistribution]":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    numbers = {int: IntDistribution, float: FloatDistribution}
    return {
        key: CategoricalDistribution(**span) if "choices" in span else numbers[SETTINGS[key].kind](**span)
        for key, span in space.items()
    }


def _contained(values: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Those values that the space could have chosen."""

    def within(value: Any, span: Mapping[str, Any]) -> bool:
        return value in span["choices"] if "choices" in span else bool(span["low"] <= value <= span["high"])

    return {key: value for key, value in values.items() if key in space and within(value, space[key])}


def read_trials(directory: Path) -> list[FinishedTrial]:
    """The finished trials of a search; none if there is no `trials.csv`."""
    path = directory / "trials.csv"
    if not path.exists():
        return []
    try:
        lines = csv.DictReader(read_bounded(path, _LARGEST_BYTES).decode().splitlines())
        return [
            FinishedTrial(
                {key: _parsed(text) for key, text in line.items() if key not in (*_COLUMNS, "reason") and text != ""},
                float(line["val_accuracy"]) if line["state"] == "complete" else None,
                int(line["fits"]),
                line.get("reason", ""),
            )
            for line in lines
            if line["state"] in ("complete", "pruned")
        ]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise CagatError(
            f"{path}: cannot be read as the trials of a search ({error}). Choose another --out."
        ) from error


def _parsed(text: str) -> Any:
    """A value of a configuration that Python's `str` wrote."""
    try:
        return json.loads({"True": "true", "False": "false"}.get(text, text))
    except ValueError:
        return text


def _require_same_search(directory: Path, asked: dict[str, Any]) -> None:
    """Write down what is searched, or refuse to mix it with the search for something else."""
    path = directory / "search.json"
    # As JSON has it, where for instance a tuple is a list.
    asked = json.loads(json.dumps(asked))
    if not path.exists():
        if (directory / "fits.jsonl").exists():
            raise ConfigError(
                f"{directory}: holds a search of an earlier version of cagat (fits.jsonl without search.json), which "
                "this one cannot continue. Choose another --out; its trials.csv can still be used with --finalists."
            )
        atomic_write(path, json.dumps(asked) + "\n")
        return
    try:
        # Searches of earlier versions do not say how many nodes validate, which was up to the protocol, nor their seed
        # and finalists; and they had no class weights, which matter to graphs of one's own.
        weight = asked["class_weight"] if all(map(is_name, asked["datasets"])) else "none"
        # And what CaGAT's first searches left open had the values of `tuned`.
        preset = "tuned" if asked["model"] == "cagat" else asked["preset"]
        unsaid = {
            "preset": preset,
            "val_labels": None,
            "class_weight": weight,
            "seed": asked["seed"],
            "finalists": asked["finalists"],
        }
        known = unsaid | json.loads(read_bounded(path, _LARGEST_BYTES))
        differing = [key for key in asked if known[key] != asked[key]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CagatError(f"{path}: cannot be read as the question of a search. Choose another --out.") from error
    if differing:
        found, wanted = (f"{differing[0]}={known[differing[0]]}", asked[differing[0]])
        raise ConfigError(f"{directory}: holds a search with {found}, not {wanted}. Choose another --out.")


def _space_of_earlier(directory: Path, model: str) -> Space:
    """The space of an earlier search: with another one, what it found would be tried in part only."""
    path = directory / "search.json"
    try:
        asked = json.loads(read_bounded(path, _LARGEST_BYTES))
        found, space = asked["model"], {key: _checked_range(key, span) for key, span in asked["space"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CagatError(f"{path}: cannot be read as the question of a search. Give its file to --space.") from error
    if found != model:
        raise ConfigError(f"{directory}: holds a search for {found}, not {model}. Use --model {found}.")
    return space


def _finalists(options: TuneOptions) -> list[Mapping[str, Any]]:
    """The best trials of an earlier search, the best first."""
    assert options.finalists is not None
    complete = [trial for trial in read_trials(options.finalists) if trial.value is not None]
    if not complete:
        raise ConfigError(
            f"{options.finalists}: holds no search with a finished trial (in trials.csv). Name the --out of an earlier "
            "cagat tune."
        )
    if len(complete) < options.trials:
        raise ConfigError(
            f"{options.finalists}: only {len(complete)} trials did all their fits. Lower --trials to that."
        )
    complete.sort(key=lambda trial: trial.value or -math.inf, reverse=True)
    return [trial.params for trial in complete]
