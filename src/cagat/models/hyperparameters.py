"""What the values of a configuration must be, whichever model takes them."""

import math
import numbers
from dataclasses import dataclass

from cagat.errors import ConfigError

Value = bool | int | float | str


@dataclass(frozen=True)
class _Number:
    """A range of numbers, its ends included."""

    low: float
    high: float = math.inf
    whole: bool = False

    def __contains__(self, value: Value) -> bool:
        # NumPy's numbers are numbers, too. True is an int to Python, but nobody means 1 unit by it.
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, (bool, str)) or not isinstance(value, kind):
            return False
        return self.low <= value <= self.high and math.isfinite(value)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low} to {self.high}" if math.isfinite(self.high) else f"{kind} not below {self.low}"


class _Switch:
    """True or false."""

    def __contains__(self, value: Value) -> bool:
        return isinstance(value, bool)

    def __str__(self) -> str:
        return "true or false"


_COUNT, _STEPS, _SHARE = _Number(1, whole=True), _Number(0, whole=True), _Number(0, 1)

_RULES: dict[str, _Number | _Switch] = {
    "hidden": _COUNT,
    "layers": _COUNT,
    "heads": _COUNT,
    "batch_size": _COUNT,
    "neighbours": _COUNT,
    "rounds": _STEPS,
    "steps": _STEPS,
    "dropout": _SHARE,
    "attention_dropout": _SHARE,
    "alpha": _SHARE,
    "lam": _SHARE,
    "xi": _Number(0),
    "weight_decay": _Number(0),
    "feedback": _Switch(),
    "learn_coefficients": _Switch(),
    "decay_biases": _Switch(),
}


def check_hyperparameter(model: str, key: str, value: Value) -> None:
    """Raise :class:`~cagat.errors.ConfigError` unless the value is one that the key can have.

    Keys without a rule, such as `support`, have a list of words to choose from, which their model knows.
    """
    rule = _RULES.get(key)
    if rule is not None and value not in rule:
        raise ConfigError(f"{model}: {key} must be {rule}, but is {value!r}.")
