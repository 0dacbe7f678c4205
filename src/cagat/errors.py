"""The errors that cagat raises on purpose."""

import difflib
from collections.abc import Iterable


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
