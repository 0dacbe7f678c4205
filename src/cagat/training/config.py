"""The configuration of a run."""

import math
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cagat.errors import ConfigError
from cagat.models import card
from cagat.models.registry import nearest
from cagat.training.path_text import can_be_a_path
from cagat.training.trainer import FitOptions

TRAINING_KEYS = ("lr", "weight_decay", "epochs", "patience")


@dataclass(frozen=True)
class TrainConfig:
    """All that decides what a run computes; the keys are the flags of `cagat train`.

    A value that is ``None`` is decided when the run starts: what belongs to a model or its training by the model's
    preset, the rest as said below. What a model has no use for stays ``None``.

    Attributes:
        dataset: A name or a path that :func:`cagat.data.load` takes.
        data_dir: Where published graphs are looked for.
        feature_norm: How rows of features are scaled.
        model: The name of the model.
        preset: Which of the model's published configurations fills in what is not given.
        labels: Training nodes a class; ``None`` for the split that came with the graph, or 20.
        val_labels: Validation nodes a class; ``None`` as above.
        seed: Of the split and of the weights.
        epochs: The largest number of epochs.
        patience: How many epochs in a row may pass without a lower validation loss.
        lr: Adam's learning rate.
        weight_decay: Adam's L2 penalty.
        hidden: Units of a hidden layer, or of each of its heads.
        layers: Number of layers.
        heads: Heads of a hidden layer.
        dropout: Dropout on each layer's input.
        attention_dropout: Dropout on the attention.
        decay_biases: Whether biases decay, too, in a model that leaves the choice.
        neighbours: How many neighbours of a node are sampled.
        batch_size: Training nodes in a step, of a model that samples, or of neighbourhoods.
        alpha: CaGAT's share of context; other models' share of what they start from.
        lam: Share of aggregated features.
        xi: Weight of the affinity.
        rounds: Number of rounds, K.
        steps: Steps of diffusion in a round, T; other models' steps of propagation.
        support: Whether S lives on all pairs or on the edges.
        affinity: Whether Q is taken on the edges or on all pairs.
        feedback: Whether H is fed back.
        normalization: How A is normalised.
        propagation: Whether all layers aggregate over the graph, or only the last.
        learn_coefficients: Whether alpha, lam and xi are learnt.
        batching: Whether an epoch takes steps on subgraphs: of parts of the graph, or of the neighbourhoods of training
            nodes; ``None`` for the whole graph in each step.
        parts: Into how many parts the graph is cut.
        parts_per_batch: How many of them make a batch.
        hops: How far neighbourhoods reach; ``None`` for as far as the model looks.
        parallel: How several processes share the work: the batches (``"data"``) or the nodes (``"graph"``).
        device: A device of torch; ``None`` for a GPU if there is one.
        threads: CPU threads; ``None`` for as many as torch takes by itself.
        deterministic: Whether results must not depend on the number of threads.
        tensorboard: Whether to write TensorBoard's event files, too.
    """

    dataset: str = "cora"
    data_dir: str | None = None
    feature_norm: Literal["l1", "l2", "binary", "none"] | None = None
    model: str = "cagat"
    preset: str | None = None
    labels: int | None = None
    val_labels: int | None = None
    seed: int = 0
    epochs: int | None = None
    patience: int | None = None
    lr: float | None = None
    weight_decay: float | None = None
    hidden: int | None = None
    layers: int | None = None
    heads: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    decay_biases: bool | None = None
    neighbours: int | None = None
    batch_size: int | None = None
    alpha: float | None = None
    lam: float | None = None
    xi: float | None = None
    rounds: int | None = None
    steps: int | None = None
    support: Literal["full", "edges"] | None = None
    affinity: Literal["edges", "full"] | None = None
    feedback: bool | None = None
    normalization: Literal["row", "sym", "walk"] | None = None
    propagation: Literal["all", "last"] | None = None
    learn_coefficients: bool | None = None
    batching: Literal["cluster", "khop"] | None = None
    parts: int | None = None
    parts_per_batch: int | None = None
    hops: int | None = None
    parallel: Literal["data", "graph"] | None = None
    device: str | None = None
    threads: int | None = None
    deterministic: bool = False
    tensorboard: bool = False

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "TrainConfig":
        """Check the names, types and ranges of given values, and fill in the preset's.

        Raises:
            ConfigError: It names the key, the value and what would do.
        """
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"A configuration must give values to keys, but is {_shown(values)}. Pass a dict such as "
                '{"model": "gcn", "epochs": 100}.'
            )
        kinds = get_type_hints(cls)
        given = {}
        for key, value in values.items():
            name = str(key).replace("-", "_")
            if name not in kinds:
                meant = _CALLED_OTHERWISE.get(name)
                hint = f" Did you mean {meant}?" if meant else nearest(name, kinds)
                raise ConfigError(f"There is no key {key!r} in a configuration.{hint}")
            given[name] = _converted(name, value, kinds[name])
        config = cls(**{key: value for key, value in given.items() if value is not None})
        return config._with_preset(given)

    @classmethod
    def converted(cls, key: str, value: Any) -> Any:
        """A value as the type that the key has.

        Raises:
            ConfigError: It has another, or there is no such key.
        """
        kinds = get_type_hints(cls)
        if key not in kinds:
            raise ConfigError(f"There is no key {key!r} in a configuration.{nearest(key, kinds)}")
        return _converted(key, value, kinds[key])

    def _with_preset(self, given: Mapping[str, Any]) -> "TrainConfig":
        known = card(self.model)
        preset = known.preset(self.preset)
        for key, value in given.items():
            is_of_batching = key == "batch_size" and self.batching == "khop"
            if value is not None and key in _MODEL_KEYS and key not in preset and not is_of_batching:
                raise ConfigError(
                    f"The model {self.model} has no {key} ({key}={value!r} was given). It takes {', '.join(preset)}."
                )
        filled = {key: value for key, value in preset.items() if getattr(self, key) is None}
        filled |= {key: value for key, value in _BATCHING.get(self.batching, {}).items() if getattr(self, key) is None}
        config = type(self)(**self.values() | filled | {"preset": self.preset or known.default})
        config._check_ranges()
        config._check_scale()
        return config

    def values(self) -> dict[str, Any]:
        """The values by key, without those that are ``None``."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {key: value for key, value in pairs if value is not None}

    def hyperparameters(self) -> dict[str, Any]:
        """What :func:`cagat.models.create` takes."""
        known = card(self.model).network.hyperparameters
        return {key: value for key, value in self.values().items() if key in known}

    def fit_options(self) -> FitOptions:
        """How to fit."""
        return FitOptions(**{key: value for key, value in self.values().items() if key in TRAINING_KEYS})

    def _check_ranges(self) -> None:
        for key, (least, most) in _RANGES.items():
            value = getattr(self, key)
            if value is not None and not least <= value <= most:
                bounds = f"at least {least}" if most == _MANY and value < least else f"from {least} to {most}"
                # Python refuses to print numbers of very many digits.
                shown = "much more" if value > 2**100 else value
                raise ConfigError(f"{key} must be {bounds}, but is {shown}.")

    def _check_scale(self) -> None:
        """Refuse what does not go together about batches and processes."""
        for key, batching in (("parts", "cluster"), ("parts_per_batch", "cluster"), ("hops", "khop")):
            if getattr(self, key) is not None and self.batching != batching:
                raise ConfigError(f"{key}={getattr(self, key)} has no meaning without --batching {batching}.")
        if self.parallel == "data" and self.batching is None:
            raise ConfigError("--parallel data shares batches, so there must be some. Add --batching cluster.")
        if self.parallel == "graph" and self.batching is not None:
            raise ConfigError(
                "--parallel graph computes the whole graph in each step, without batches. Leave --batching out, or use "
                "--parallel data."
            )
        if self.parallel == "graph" and (self.model != "cagat" or self.support != "full"):
            raise ConfigError(
                f"--parallel graph computes the model cagat with --support full, but not {self.model}"
                f"{'' if self.support is None else f' with --support {self.support}'}. Use --batching cluster "
                "--parallel data."
            )


_MODEL_KEYS = frozenset(field.name for field in fields(TrainConfig)) - {
    "dataset", "data_dir", "model", "preset", "labels", "val_labels", "seed",
    "device", "threads", "deterministic", "tensorboard", "batching", "parts", "parts_per_batch", "hops", "parallel",
}  # fmt: skip

# What batches are made of if nothing else is said.
_BATCHING: dict[str | None, dict[str, int]] = {
    "cluster": {"parts": 50, "parts_per_batch": 10},
    "khop": {"batch_size": 64},
}

# What the paper and PyG call them.
_CALLED_OTHERWISE = {"K": "rounds", "T": "steps", "lambda": "lam", "hidden_channels": "hidden", "num_layers": "layers"}

# The model itself checks its own hyperparameters; these are checked before any data is loaded.
_MANY = 2**31 - 1
_RANGES: dict[str, tuple[float, float]] = {
    "labels": (1, _MANY),
    "val_labels": (1, _MANY),
    "seed": (0, 2**32 - 1),
    "epochs": (1, _MANY),
    "patience": (1, _MANY),
    "lr": (0, 1e3),
    "weight_decay": (0, 1e3),
    "hidden": (1, 2**20),
    "layers": (1, 1000),
    "heads": (1, 2**14),
    "dropout": (0, 1),
    "attention_dropout": (0, 1),
    "neighbours": (1, _MANY),
    "batch_size": (1, _MANY),
    "alpha": (0, 1),
    "lam": (0, 1),
    "xi": (0, 1e30),
    "rounds": (0, 10_000),
    "steps": (0, 10_000),
    "parts": (1, _MANY),
    "parts_per_batch": (1, _MANY),
    "hops": (1, 1000),
    "threads": (1, 4096),
}

_LARGEST_BITS = 63


def _shown(value: Any) -> str:
    """A value in a message: of a list or the like only what it is, and of a very long number, too."""
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        return "a number of more than 18 digits"
    return repr(value) if isinstance(value, (bool, int, float, str)) else f"a {type(value).__name__}"


def _converted(key: str, value: Any, kind: Any) -> Any:
    """The value as the type of its field."""
    if get_origin(kind) in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = (part for part in get_args(kind) if part is not type(None))
    if value is None:
        raise ConfigError(f"{key} must not be empty.")
    if get_origin(kind) is Literal:
        # YAML reads `no` as false and `none` as a word; say what is there, not what it became.
        if value in get_args(kind):
            return value
        raise ConfigError(f"{key} must be one of {', '.join(get_args(kind))}, but is {_shown(value)}.")
    if kind is float and isinstance(value, (int, float, str)) and not isinstance(value, bool):
        # YAML 1.1 takes 5e-4 for a word: only 5.0e-4 is a number to it.
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    elif kind is str and isinstance(value, str) and not can_be_a_path(value):
        raise ConfigError(f"{key} is {value!r}, which holds a character that no name or path can have.")
    elif kind is int and isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        raise ConfigError(f"{key} must be at most {2**_LARGEST_BITS - 1}, but is {_shown(value)}.")
    elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    elif kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    names = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a word"}
    raise ConfigError(f"{key} must be {names[kind]}, but is {_shown(value)}.")
