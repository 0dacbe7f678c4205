"""Models that label nodes: CaGAT and what it is compared with."""

from typing import Any

from cagat.configs import ModelCard, card, names
from cagat.errors import ConfigError, nearest
from cagat.models.appnp import APPNP, SGC
from cagat.models.cagat import CaGAT
from cagat.models.cvd_pp import CVDPP
from cagat.models.dgi import DGI
from cagat.models.gat import GAT, GATv2
from cagat.models.gcn import GCN, GraphSAGE
from cagat.models.gcnii import GCNII
from cagat.models.grand import GRAND
from cagat.models.labelprop import LabelProp, LabelPropNL
from cagat.models.mlp import MLP, LogReg
from cagat.models.node_classifier import Labelled, NodeClassifier
from cagat.settings import checked

__all__ = [
    "APPNP",
    "CVDPP",
    "DGI",
    "GAT",
    "GCN",
    "GCNII",
    "GRAND",
    "MLP",
    "SGC",
    "CaGAT",
    "GATv2",
    "GraphSAGE",
    "LabelProp",
    "LabelPropNL",
    "Labelled",
    "LogReg",
    "ModelCard",
    "NodeClassifier",
    "card",
    "create",
    "names",
]


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
    network: type[NodeClassifier] = known.network
    arguments = network.hyperparameters
    values = {key: value for key, value in known.preset(preset).items() if key in arguments}
    for key, value in hyperparameters.items():
        if key not in arguments:
            raise ConfigError(f"{name} has no {key!r}.{nearest(key, arguments)}")
        if value is not None:
            values[key] = checked(key, value, f"{name}: ")
    chosen = {arguments[key]: value for key, value in values.items()}
    try:
        return network(in_channels=in_channels, out_channels=out_channels, **chosen)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        # torch says that memory is short with a RuntimeError of several lines.
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from error
