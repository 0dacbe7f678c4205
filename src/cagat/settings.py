"""Every setting of a run, declared once: its type, range, default, group and help.

:class:`TrainConfig` is the declaration, and a new setting is one line of it. The flags of `cagat train`, YAML files,
:func:`cagat.models.create`, the estimator, the search space and docs/reference/settings.md are made from it.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from cagat.configs import card
from cagat.errors import NO_LIMIT, ConfigError, expected_number, nearest, shown, wrong_value

GRAPH, TABLES, MODEL, CAGAT = "Graph", "Tables", "Model", "CaGAT"
TRAINING, SCALE, RUN = "Training", "Large graphs", "Run"

FeatureNorm = Literal["l1", "l2", "binary", "none"]


def _setting(
    group: str,
    text: str,
    default: Any = None,
    low: float | None = None,
    high: float | None = None,
    preset: bool = False,
) -> Any:
    about: dict[str, Any] = {"group": group, "text": text, "low": low, "high": high, "by_preset": preset}
    return Field(default, ge=low, le=high, json_schema_extra=about)


def _by_preset(group: str, text: str, low: float | None = None, high: float | None = None) -> Any:
    """A setting whose default is the value of the model's preset; a model whose presets lack it has no use for it."""
    return _setting(group, text, None, low, high, preset=True)


def _consistent(text: str, default: Any, low: float, high: float) -> Any:
    """A setting of the objective `consistent`."""
    return _setting(TRAINING, f"{text} (consistent).", default, low, high)


class TrainConfig(BaseModel):
    """All that decides what a run computes. Make one with :meth:`from_values`.

    docs/reference/settings.md explains the settings.

    A value that is ``None`` is decided when the run starts, or the model has no use for it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    dataset: str = _setting(GRAPH, "A name from `cagat data list`, or a path.", "cora")
    data_dir: str | None = _setting(
        GRAPH, "Directory of published graphs; by default $CAGAT_DATA, or your cache directory."
    )
    feature_norm: FeatureNorm | None = _by_preset(GRAPH, "How to scale each node's features.")
    protocol: Literal["all", "split"] | None = _setting(
        GRAPH,
        "Train on all labels and estimate accuracy by cross-validation, or on a split; by default all for your own "
        "graph without a split.",
    )
    labels: int | None = _setting(
        GRAPH, "Training nodes per class; by default the graph's own split, or 20.", low=1, high=NO_LIMIT
    )
    val_labels: int | None = _setting(
        GRAPH, "Validation nodes per class; by default the graph's own split, or 20.", low=0, high=NO_LIMIT
    )
    train_fraction: float | None = _setting(
        GRAPH, "Share of each class for training, instead of a number.", low=0, high=1
    )
    val_fraction: float | None = _setting(
        GRAPH, "Share of each class for validation, instead of a number.", low=0, high=1
    )
    seed: int = _setting(GRAPH, "Seed of the split and of the initial weights.", 0, 0, 2**32 - 1)

    source: str | None = _setting(
        TABLES, "Column of the edges table with one end of each edge; by default common names."
    )
    target: str | None = _setting(TABLES, "Column of the edges table with the other end; by default common names.")
    node: str | None = _setting(TABLES, "Column with the names of nodes; by default `node`, `node_id` or `id`.")
    label: str | None = _setting(TABLES, "Column with the labels; by default `label`, `class`, `target` or `y`.")
    columns: str | None = _setting(
        TABLES, "A YAML file with the types of feature columns; by default the graph's `columns.yaml`."
    )

    model: str = _setting(MODEL, "The model; see `cagat models`.", "cagat")
    preset: str | None = _setting(
        MODEL, "Published configuration for all settings that are not given; see `cagat models`."
    )
    hidden: int | None = _by_preset(MODEL, "Units per hidden layer, or per head.", 1, 2**20)
    layers: int | None = _by_preset(MODEL, "Number of layers.", 1, 1000)
    heads: int | None = _by_preset(MODEL, "Attention heads per hidden layer.", 1, 2**14)
    dropout: float | None = _by_preset(MODEL, "Dropout on the input of each layer.", 0, 1)
    attention_dropout: float | None = _by_preset(MODEL, "Dropout on the attention.", 0, 1)
    attention_weight_decay: float | None = _by_preset(
        MODEL, "Weight decay of what attention is made with; by default `weight_decay` (cagat, gat).", 0, 1000
    )
    input_dropout: float | None = _by_preset(MODEL, "Dropout on the propagated features (grand).", 0, 1)
    dropnode: float | None = _by_preset(
        MODEL, "Share of nodes whose features are dropped in a training step (grand).", 0, 1
    )
    theta: float | None = _by_preset(MODEL, "How far weights may be from the identity (gcnii).", 0, 1000)
    dense_weight_decay: float | None = _by_preset(MODEL, "Weight decay of dense layers (gcnii).", 0, 1000)
    decay_biases: bool | None = _by_preset(MODEL, "Also apply weight decay to biases (gat).")
    neighbours: int | None = _by_preset(MODEL, "Neighbours sampled per node (cvd-pp).", 1, NO_LIMIT)
    batch_size: int | None = _by_preset(MODEL, "Training nodes per step (cvd-pp; khop, by default 64).", 1, NO_LIMIT)

    alpha: float | None = _by_preset(
        CAGAT, "Share of context in the attention; in appnp and gcnii, of the initial features.", 0, 1
    )
    lam: float | None = _by_preset(CAGAT, "Share of aggregated features in a node's output.", 0, 1)
    xi: float | None = _by_preset(CAGAT, "Weight of the feature affinity.", 0, 1e30)
    rounds: int | None = _by_preset(CAGAT, "Rounds of diffusion (K in the paper).", 0, 10_000)
    steps: int | None = _by_preset(
        CAGAT, "Diffusion steps per round (T in the paper); in other models, propagation steps.", 0, 10_000
    )
    support: Literal["full", "edges"] | None = _by_preset(
        CAGAT, "Keep the attention S on all pairs of nodes, or on edges only."
    )
    affinity: Literal["full", "edges"] | None = _by_preset(
        CAGAT, "Compute the affinity Q on all pairs of nodes, or on edges only."
    )
    feedback: bool | None = _by_preset(CAGAT, "Aggregate the features of the previous round, S H, instead of S Z.")
    normalization: Literal["row", "sym", "walk", "gcn"] | None = _by_preset(
        CAGAT, "How to normalise the adjacency matrix."
    )
    propagation: Literal["all", "last"] | None = _by_preset(CAGAT, "Which layers aggregate over the graph.")
    learn_coefficients: bool | None = _by_preset(CAGAT, "Learn alpha, lam and xi.")

    epochs: int | None = _by_preset(TRAINING, "Maximum number of epochs.", 1, NO_LIMIT)
    patience: int | None = _by_preset(
        TRAINING, "Stop after so many epochs without a lower validation loss.", 1, NO_LIMIT
    )
    lr: float | None = _by_preset(TRAINING, "Adam's learning rate.", 0, 1000)
    weight_decay: float | None = _by_preset(
        TRAINING, "Adam's L2 penalty; with more than 20 labels per class it is smaller in proportion.", 0, 1000
    )
    objective: Literal["supervised", "consistent"] = _setting(
        TRAINING, "Learn from labels alone, or also make predictions consistent under dropout.", "supervised"
    )
    samples: int | None = _consistent("Predictions per step", 2, 1, 64)
    consistency: float | None = _consistent("Weight of the consistency loss", 1.0, 0, 1e6)
    emphasis: float | None = _consistent(
        "How much more that counts where labels are few: 1 + emphasis * min(1, 2 / labels per class) times",
        0.0,
        0,
        100,
    )
    ramp: int | None = _consistent("Epochs until the consistency loss has its full weight", 100, 0, NO_LIMIT)
    sharpening: float | None = _consistent("Temperature of the consistency target", 0.5, 0.01, 1)
    alignment: float | None = _consistent(
        "How strongly to balance predicted classes, from 0 (not at all) to 1; by default more with fewer labels",
        None,
        0,
        1,
    )
    stopping: Literal["loss", "none"] = _setting(
        TRAINING, "Keep the weights with the lowest validation loss, or with none those after `fixed_epochs`.", "loss"
    )
    fixed_epochs: int = _setting(TRAINING, "Number of epochs if validation does not decide.", 200, 1, NO_LIMIT)
    class_weight: Literal["auto", "balanced", "none"] = _setting(
        TRAINING, "Weight of rare classes in the loss; auto balances if most labels are of one class.", "auto"
    )
    device: str | None = _setting(TRAINING, "Device, such as cpu or cuda; by default a GPU if there is one.")
    threads: int | None = _setting(
        TRAINING, "Number of CPU threads; by default as many as torch uses.", low=1, high=4096
    )
    deterministic: bool = _setting(TRAINING, "Bitwise reproducible for any number of threads.", False)

    batching: Literal["cluster", "khop"] | None = _setting(
        SCALE, "Train on subgraphs: clusters, or neighbourhoods of training nodes."
    )
    parts: int | None = _setting(SCALE, "Number of clusters (cluster; by default 50).", low=1, high=NO_LIMIT)
    parts_per_batch: int | None = _setting(SCALE, "Clusters per batch (cluster; by default 10).", low=1, high=NO_LIMIT)
    hops: int | None = _setting(
        SCALE, "Size of neighbourhoods in hops (khop); by default all that the model uses.", low=1, high=1000
    )
    parallel: Literal["data", "graph"] | None = _setting(
        SCALE, "Under torchrun, split the batches (data) or the nodes (graph) among the processes."
    )
    halo_dtype: Literal["bfloat16"] | None = _setting(
        SCALE, "What numbers are sent as (graph); by default as they are."
    )
    out_of_core: bool = _setting(
        SCALE, "Work on the parts of a graph one after the other, with memory for one and disk for the rest.", False
    )

    baselines: bool = _setting(RUN, "Also fit a perceptron without the graph, for comparison.", True)
    tensorboard: bool = _setting(RUN, "Also write TensorBoard event files.", False)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "TrainConfig":
        """Check the names, types and ranges of given values, and fill in the preset's.

        Raises:
            ConfigError: It names the key, the value and what would do.
        """
        if not isinstance(values, Mapping):
            raise ConfigError(
                f"A configuration must give values to keys, but is {shown(values)}. Pass a dict such as "
                '{"model": "gcn", "epochs": 100}.'
            )
        named = {str(key).replace("-", "_"): value for key, value in values.items()}
        given = {key: checked(key, value) for key, value in named.items()}
        config = cls(**given)
        known = card(config.model)
        preset = known.preset(config.preset)
        for key, value in given.items():
            foreign = value is not None and SETTINGS[key].by_preset and key not in known.settings
            if foreign and not (key == "batch_size" and config.batching == "khop"):
                takes = ", ".join(known.settings)
                raise ConfigError(
                    f"The model {config.model} has no {key} ({key}={value!r} was given). It takes {takes}."
                )
        given = {key: value for key, value in given.items() if value is not None}
        config = cls(**({"preset": known.default, **preset, **_BATCHES.get(config.batching, {})} | given))
        if config.objective == "supervised":
            for key in given.keys() & set(CONSISTENT):
                raise ConfigError(f"{key}={given[key]} has no meaning without --objective consistent.")
            config = config.model_copy(update=dict.fromkeys(CONSISTENT))
        config._check_protocol()
        config._check_scale()
        return config

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any, info: ValidationInfo) -> Any:
        """A value as Python has it: NumPy's numbers are numbers, and to YAML 1.1 5e-4 is text and 2019 no name."""
        kind = SETTINGS[info.field_name].kind if info.field_name else None
        if type(value).__module__ == "numpy":
            value = value.item()
        if kind is float and isinstance(value, str):
            return float(value)
        if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if kind is str and isinstance(value, str) and not can_name_a_file(value):
            raise ValueError("no name or path")
        return value

    def values(self) -> dict[str, Any]:
        """The values by key, without those that are ``None``."""
        return {key: value for key, value in self if value is not None}

    def hyperparameters(self) -> dict[str, Any]:
        """What :func:`cagat.models.create` takes."""
        known = card(self.model).network.hyperparameters
        return {key: value for key, value in self.values().items() if key in known}

    def fit_options(self) -> "FitOptions":
        """How to fit."""
        names = {one.name for one in fields(FitOptions)}
        return FitOptions(**{key: value for key, value in self.values().items() if key in names})

    def _check_protocol(self) -> None:
        """Refuse what does not go together about labels."""
        counts = [key for key in ("labels", "val_labels") if getattr(self, key) is not None]
        fractions = [key for key in ("train_fraction", "val_fraction") if getattr(self, key) is not None]
        if counts and fractions:
            raise ConfigError(f"{counts[0]} is a number of nodes and {fractions[0]} a share of them. Give one kind.")
        if fractions and not self.train_fraction:
            raise ConfigError("val_fraction needs train_fraction, the share of nodes for training. Give both.")
        for key in (*counts, *fractions) if self.protocol == "all" else ():
            raise ConfigError(f"{key} draws a split, but protocol=all trains on all labels. Use protocol=split.")
        if self.protocol == "all" and (self.parallel is not None or self.out_of_core):
            how = "out_of_core" if self.parallel is None else f"parallel={self.parallel}"
            raise ConfigError(f"protocol=all cannot be had with {how}. Use protocol=split.")

    def _check_scale(self) -> None:
        """Refuse what does not go together about batches and processes."""
        for key, batching in (("parts", "cluster"), ("parts_per_batch", "cluster"), ("hops", "khop")):
            if getattr(self, key) is not None and self.batching != batching:
                raise ConfigError(f"{key}={getattr(self, key)} has no meaning without --batching {batching}.")
        if self.halo_dtype is not None and self.parallel != "graph":
            raise ConfigError(f"halo_dtype={self.halo_dtype} has no meaning without --parallel graph.")
        if self.parallel == "data" and self.batching is None:
            raise ConfigError("--parallel data shares batches, so there must be some. Add --batching cluster.")
        in_parts = "--parallel graph" if self.parallel == "graph" else "--out-of-core" if self.out_of_core else None
        if self.out_of_core and self.parallel is not None:
            raise ConfigError("--out-of-core is for one process alone. Leave --parallel out.")
        if in_parts and self.batching is not None:
            raise ConfigError(
                f"{in_parts} computes the whole graph in each step, without batches. Leave --batching out, or use "
                "--parallel data."
            )
        if in_parts and (self.model != "cagat" or self.support != "full"):
            raise ConfigError(
                f"{in_parts} computes the model cagat with --support full, but not {self.model}"
                f"{'' if self.support is None else f' with --support {self.support}'}. Use --batching cluster "
                "--parallel data."
            )


# What batches are made of if nothing else is said.
_BATCHES: dict[str | None, dict[str, int]] = {
    "cluster": {"parts": 50, "parts_per_batch": 10},
    "khop": {"batch_size": 64},
}

CONSISTENT = ("samples", "consistency", "emphasis", "ramp", "sharpening", "alignment")
"""The settings of the objective `consistent`."""

# What the paper and PyG call them.
_CALLED_OTHERWISE = {"K": "rounds", "T": "steps", "lambda": "lam", "hidden_channels": "hidden", "num_layers": "layers"}


def _of_the_paper(name: str) -> Any:
    return field(default_factory=lambda: card("cagat").preset("paper")[name])


def _declared_default(name: str) -> Any:
    return TrainConfig.model_fields[name].default


@dataclass(frozen=True)
class FitOptions:
    """How a model is fitted; the defaults are those of the preset `paper` of CaGAT."""

    lr: float = _of_the_paper("lr")
    weight_decay: float = _of_the_paper("weight_decay")
    epochs: int = _of_the_paper("epochs")
    patience: int = _of_the_paper("patience")
    fixed_epochs: int = _declared_default("fixed_epochs")
    stopping: str = _declared_default("stopping")
    objective: str = _declared_default("objective")
    samples: int = _declared_default("samples")
    consistency: float = _declared_default("consistency")
    emphasis: float = _declared_default("emphasis")
    ramp: int = _declared_default("ramp")
    sharpening: float = _declared_default("sharpening")
    alignment: float | None = _declared_default("alignment")

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None or name != "alignment":
                checked(name, value)


@dataclass(frozen=True)
class Setting:
    """What :class:`TrainConfig` declares of one setting: `kind` is str, int, float or bool."""

    name: str
    kind: type
    choices: tuple[str, ...]
    default: Any
    group: str
    text: str
    low: float | None
    high: float | None
    by_preset: bool

    @property
    def expected(self) -> str:
        """What a value must be."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind in (bool, str):
            return "true or false" if self.kind is bool else "valid text"
        assert self.low is not None
        assert self.high is not None
        return expected_number(self.kind, self.low, self.high)


def _declared(name: str) -> Setting:
    declared = TrainConfig.model_fields[name]
    kind: Any = declared.annotation
    if type(None) in get_args(kind):
        (kind,) = (part for part in get_args(kind) if part is not type(None))
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    about: Any = declared.json_schema_extra
    return Setting(name, str if choices else kind, choices, declared.default, **about)


SETTINGS: dict[str, Setting] = {name: _declared(name) for name in TrainConfig.model_fields}
"""Every setting by name, in the order of :class:`TrainConfig`."""

READING = tuple(name for name, setting in SETTINGS.items() if setting.group == TABLES)
"""The settings that say how the tables of a graph are read."""


def checked(name: str, value: Any, owner: str = "") -> Any:
    """The value as the type that the setting has."""
    if name not in SETTINGS:
        meant = _CALLED_OTHERWISE.get(name)
        hint = f" Did you mean {meant}?" if meant else nearest(name, SETTINGS)
        raise ConfigError(f"{owner}There is no key {name!r} in a configuration.{hint}")
    try:
        return getattr(TrainConfig.model_validate({name: value}), name)
    except ValidationError:
        raise ConfigError(f"{wrong_value(owner + name, SETTINGS[name].expected, value)}.") from None


def can_name_a_file(text: str) -> bool:
    r"""Whether the system could be asked for a file of this name; ``"\0"`` and ``"\uD800"`` it cannot be asked for."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def reference_page() -> str:
    """The text of docs/reference/settings.md."""
    preset = card(TrainConfig().model).preset()
    lines = [
        "# Settings",
        "",
        "Each setting is a flag of `cagat train` (`--val-labels` for `val_labels`) and a key of a `--config` file and",
        "of `TrainConfig.from_values`. `CaGATClassifier` has those of CaGAT and its training as parameters.",
        "A default in italics comes from CaGAT's default preset; other models have their own (`cagat models --json`).",
        "",
        "This page is written by `python -m cagat.settings > docs/reference/settings.md`.",
    ]
    for group in dict.fromkeys(setting.group for setting in SETTINGS.values()):
        lines += ["", f"## {group}", "", "| setting | value | default | meaning |", "|---|---|---|---|"]
        for setting in SETTINGS.values():
            if setting.group == group:
                default = preset.get(setting.name, setting.default)
                quote = "*" if setting.name in preset else "`"
                shown = "" if default is None else quote + json.dumps(default).strip('"') + quote
                value = re.sub("^(valid |one of |a number (from )?)", "", setting.expected).replace(
                    "a whole number", "whole,"
                )
                value = value.replace("whole, from", "whole,").replace("whole, of", "whole,")
                lines.append(f"| `{setting.name}` | {value} | {shown} | {setting.text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference_page(), end="")
