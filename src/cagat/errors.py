"""The errors that cagat raises on purpose."""

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any

NO_LIMIT = 2**31 - 1
"""The largest whole number where there is no limit that a user should have to think about."""


class CagatError(Exception):
    """Base of every error that is about the user's input or machine, not about a defect of ours.

    The command line prints such an error as one message and exits with :attr:`exit_code`, without a traceback.
    """

    exit_code = 1


class DatasetError(CagatError, ValueError):
    """A data set, a file of one, or a split cannot be used as it is."""


class ConfigError(CagatError, ValueError):
    """A key or a value of a configuration, of a flag or of a model's arguments cannot be used."""


class DamagedFileError(CagatError, ValueError):
    """A file is not what was written."""


class NonFiniteError(CagatError, ValueError):
    """Features are NaN or infinite, or so large that what is computed from them is."""


def nearest(wrong: str, right: Iterable[str]) -> str:
    """The end of an error message: what was perhaps meant, or all that there is."""
    right = list(right)
    near = difflib.get_close_matches(wrong, right, n=1)
    return f" Did you mean {near[0]}?" if near else f" Choose one of {', '.join(right)}."


def expected_number(kind: type, low: float, high: float, value: Any = None) -> str:
    """What a number must be instead of a value: `kind` is int or float, and the ends of the range belong to it."""
    number = "a whole number" if kind is int else "a number"
    if high != NO_LIMIT:
        return f"{number} from {low} to {high}"
    is_larger = isinstance(value, Real) and value > high  # type: ignore[operator]
    return f"at most {high}" if is_larger else f"{number} of at least {low}"


def wrong_value(name: str, expected: str, value: Any) -> str:
    """The message that a value is not what it must be."""
    return f"{name} must be {expected}, but is {shown(value)}"


def shown(value: Any) -> str:
    """A value in a message: of a list or the like only what it is, and of a very long number, too."""
    if value is None:
        return "empty (None)"
    if isinstance(value, int) and value.bit_length() > 63:
        return "a number of more than 18 digits"
    return f"{value!r:.80}" if isinstance(value, (bool, Real, str)) else f"a {type(value).__name__}"
