"""Published configurations, as YAML, and the cards of the models that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

import yaml

from cagat.errors import ConfigError, nearest

# The class of each model in cagat.models; what it is and how it is trained is in models/NAME.yaml.
_CLASSES = {
    "cagat": "CaGAT",
    "gat": "GAT",
    "gatv2": "GATv2",
    "gcn": "GCN",
    "graphsage": "GraphSAGE",
    "appnp": "APPNP",
    "sgc": "SGC",
    "gcnii": "GCNII",
    "grand": "GRAND",
    "dgi": "DGI",
    "cvd-pp": "CVDPP",
    "mlp": "MLP",
    "logreg": "LogReg",
    "labelprop": "LabelProp",
    "labelprop-nl": "LabelPropNL",
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
        presets: The published configurations, each with all that can be set, of the model and of its training; but an
            ``attention_weight_decay`` that is not there is the weight decay of the rest.
    """

    name: str
    title: str
    paper: str
    link: str
    default: str
    presets: Mapping[str, Mapping[str, Any]]

    @property
    def settings(self) -> list[str]:
        """All that any preset sets, and so all that the model has a use for."""
        return list(dict.fromkeys(key for preset in self.presets.values() for key in preset))

    def preset(self, name: str | None = None) -> Mapping[str, Any]:
        """The values of a preset, or of the default one."""
        name = self.default if name is None else name
        if name not in self.presets:
            raise ConfigError(f"{self.name} has no preset {name!r}. Choose one of {', '.join(self.presets)}.")
        return self.presets[name]

    @property
    def network(self) -> type[Any]:
        """The class of the model, a :class:`~cagat.models.NodeClassifier`; only this imports torch."""
        network: type[Any] = getattr(import_module("cagat.models"), _CLASSES[self.name])
        return network


def names() -> list[str]:
    """The names of all models."""
    return list(_CLASSES)


@cache
def card(name: str) -> ModelCard:
    """What is known about the model of this name."""
    if name not in _CLASSES:
        raise ConfigError(f"There is no model {name!r}.{nearest(str(name), _CLASSES)}")
    text = (resources.files("cagat.configs") / "models" / f"{name}.yaml").read_text(encoding="utf-8")
    return ModelCard(name=name, **yaml.safe_load(text))
