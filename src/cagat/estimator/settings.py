"""The classifier's parameters, completed by a preset and sorted by who takes them."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

from cagat.errors import ConfigError
from cagat.estimator.feature_scaling import STANDARD
from cagat.models import card
from cagat.training import FitOptions

_COUNTS = {"hidden": 1, "layers": 1, "heads": 1, "rounds": 0, "steps": 0, "epochs": 1, "patience": 1}
_OPTIONS = ("lr", "weight_decay", "epochs", "patience")


class Settings(NamedTuple):
    """What the network, the training and the scaling of the features take."""

    network: dict[str, Any]
    options: FitOptions
    feature_norm: str


def settle(parameters: Mapping[str, Any], *, dense_points: bool) -> Settings:
    """Complete parameters by those of their preset wherever they are None.

    Args:
        parameters: The classifier's parameters by name.
        dense_points: Whether X is dense and no graph was given. Such features are measurements of any scale, not the
            bags of words that the presets were made for, so their default is to be standardised.
    """
    known = card("cagat")
    preset = known.preset(parameters["preset"])
    given = {name: value for name, value in parameters.items() if value is not None}
    if dense_points:
        given.setdefault("feature_norm", STANDARD)
    values = {name: given.get(name, value) for name, value in preset.items()}
    for name, value in preset.items():
        _require_number(name, values[name], value)
    try:
        options = FitOptions(**{name: values[name] for name in _OPTIONS})
    except ValueError as error:
        raise ConfigError(f"{error}.") from error
    network = {name: value for name, value in values.items() if name in known.network.hyperparameters}
    return Settings(network, options, values["feature_norm"])


def _require_number(name: str, given: Any, preset: Any) -> None:
    """Raise if the preset has a number where the user gave something else, before it is compared or multiplied."""
    if isinstance(preset, (bool, str)):
        return
    if not isinstance(given, Real) or isinstance(given, bool):
        raise ConfigError(f"{name} must be a number, got {given!r}.")
    if name in _COUNTS and not isinstance(given, Integral):
        raise ConfigError(f"{name} must be an integer, got {given!r}.")
    if name in _COUNTS and given < _COUNTS[name]:
        raise ConfigError(f"{name} must be at least {_COUNTS[name]}, got {given}.")
