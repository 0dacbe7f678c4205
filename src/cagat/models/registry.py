"""Models by name."""

from typing import Any

from cagat.configs import ModelCard, card, names
from cagat.errors import ConfigError, nearest
from cagat.models.node_classifier import NodeClassifier
from cagat.settings import checked

__all__ = ["ModelCard", "card", "create", "names"]


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
    values = {key: value for key, value in known.preset(preset).items() if key in arguments}
    for key, value in hyperparameters.items():
        if key not in arguments:
            raise ConfigError(f"{name} has no {key!r}.{nearest(key, arguments)}")
        if value is not None:
            values[key] = checked(key, value, f"{name}: ")
    chosen: dict[str, Any] = {arguments[key]: value for key, value in values.items()}
    network: type[NodeClassifier] = known.network
    try:
        return network(in_channels=in_channels, out_channels=out_channels, **chosen)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        # torch says that memory is short with a RuntimeError of several lines.
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from error
