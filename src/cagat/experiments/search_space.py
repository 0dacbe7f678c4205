"""What a search may try."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cagat import configs
from cagat.configs import card
from cagat.errors import ConfigError, nearest
from cagat.settings import SETTINGS, checked
from cagat.training.config_file import read_config

if TYPE_CHECKING:
    import optuna


class SearchSpace:
    """The keys of a configuration that a search may set, and to what.

    Args:
        ranges: For each key `{choices: [...]}`, or `{low: ..., high: ...}` with or without `log: true`.
    """

    def __init__(self, ranges: Mapping[str, Mapping[str, Any]]) -> None:
        self.ranges = {key: _checked(key, span) for key, span in ranges.items()}

    @classmethod
    def of(cls, model: str, path: Path | None = None) -> "SearchSpace":
        """The part of a file, or of our own, that a model has use for."""
        ranges = read_config(Path(configs.__path__[0]) / "search.yaml" if path is None else path)
        known = card(model).preset()
        if path is not None:
            for key in ranges:
                if key not in known:
                    raise ConfigError(f"{path}: {model} has no {key!r} to search.{nearest(str(key), known)}")
        return cls({key: span for key, span in ranges.items() if key in known})

    def suggest(self, trial: "optuna.Trial") -> dict[str, Any]:
        """Let a trial choose."""
        return {key: _suggest(trial, key, span) for key, span in self.ranges.items()}

    def contains(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those values that the space could have chosen."""
        return {key: value for key, value in values.items() if key in self.ranges and _within(value, self.ranges[key])}


def _checked(key: str, span: Any) -> dict[str, Any]:
    """A range that is not empty, of values that the setting can have."""
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


def _suggest(trial: "optuna.Trial", key: str, span: Mapping[str, Any]) -> Any:
    if "choices" in span:
        return trial.suggest_categorical(key, span["choices"])
    suggest: Any = trial.suggest_int if SETTINGS[key].kind is int else trial.suggest_float
    return suggest(key, span["low"], span["high"], log=span["log"])


def _within(value: Any, span: Mapping[str, Any]) -> bool:
    if "choices" in span:
        return value in span["choices"]
    return bool(span["low"] <= value <= span["high"])
