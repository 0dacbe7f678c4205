"""All models by name."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

import yaml

from cagat.errors import ConfigError
from cagat.models.hyperparameters import Value, check_hyperparameter
from cagat.models.node_classifier import NodeClassifier

# Where each model is; what it is and how it is trained is in configs/models/NAME.yaml.
_CLASSES = {
    "cagat": "cagat.models.cagat:CaGAT",
    "gat": "cagat.models.gat:GAT",
    "gatv2": "cagat.models.gatv2:GATv2",
    "gcn": "cagat.models.gcn:GCN",
    "graphsage": "cagat.models.graphsage:GraphSAGE",
    "appnp": "cagat.models.appnp:APPNP",
    "sgc": "cagat.models.sgc:SGC",
    "dgi": "cagat.models.dgi:DGI",
    "cvd-pp": "cagat.models.cvd_pp:CVDPP",
    "mlp": "cagat.models.mlp:MLP",
    "logreg": "cagat.models.logreg:LogReg",
    "labelprop": "cagat.models.labelprop:LabelProp",
    "labelprop-nl": "cagat.models.labelprop_nl:LabelPropNL",
}


@dataclass(frozen=True)
class ModelCard:
    """What is known about a model.

    Attributes:
        name: The name that `cagat train --model` takes.
        title: What the model is called in full.
        paper: Who published it.
        link: Where to read about it.
        default: The preset that is taken if none is asked for.
        presets: The published configurations, each with all that can be set, of the model and of its training.
    """

    name: str
    title: str
    paper: str
    link: str
    default: str
    presets: Mapping[str, Mapping[str, Value]]

    def preset(self, name: str | None = None) -> Mapping[str, Value]:
        """The values of a preset, or of the default one."""
        name = self.default if name is None else name
        if name not in self.presets:
            raise ConfigError(f"{self.name} has no preset {name!r}. Choose one of {', '.join(self.presets)}.")
        return self.presets[name]

    @property
    def network(self) -> type[NodeClassifier]:
        """The class of the model."""
        module, name = _CLASSES[self.name].split(":")
        network: type[NodeClassifier] = getattr(import_module(module), name)
        return network


def names() -> list[str]:
    """The names of all models."""
    return list(_CLASSES)


@cache
def card(name: str) -> ModelCard:
    """What is known about the model of this name."""
    if name not in _CLASSES:
        raise ConfigError(f"There is no model {name!r}.{nearest(str(name), _CLASSES)}")
    file = resources.files("cagat.configs") / "models" / f"{name}.yaml"
    text = file.read_text(encoding="utf-8")
    return ModelCard(name=name, **yaml.safe_load(text))


def create(
    name: str, in_channels: int, out_channels: int, preset: str | None = None, **hyperparameters: Any
) -> NodeClassifier:
    """Make a model with fresh weights.

    Args:
        name: The name of the model; `cagat models` lists them.
        in_channels: Number of input features.
        out_channels: Number of classes.
        preset: Which published configuration gives the values that are not given.
        **hyperparameters: What should differ from the preset: `hidden`, `dropout` and so on.
    """
    known = card(name)
    arguments = known.network.hyperparameters
    for key, value in hyperparameters.items():
        if key not in arguments:
            raise ConfigError(f"{name} has no {key!r}.{nearest(key, arguments)}")
        check_hyperparameter(name, key, value)
    values = {key: value for key, value in known.preset(preset).items() if key in arguments} | hyperparameters
    chosen: dict[str, Any] = {arguments[key]: value for key, value in values.items()}
    try:
        return known.network(in_channels=in_channels, out_channels=out_channels, **chosen)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        # torch says that memory is short with a RuntimeError of several lines.
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from error


def nearest(wrong: str, right: Iterable[str]) -> str:
    """The end of an error message: what was perhaps meant, or all that there is."""
    right = list(right)
    near = difflib.get_close_matches(wrong, right, n=1)
    return f" Did you mean {near[0]}?" if near else f" Choose one of {', '.join(right)}."
