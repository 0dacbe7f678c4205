"""What the values must be that a layer is made with."""

import difflib
import numbers
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from torch import Tensor

from cagat.kernels.validation import require_dense

LARGEST = 1e30
"""Of numbers without a limit of their own: what is larger, or soon what is computed with it, float32 cannot hold."""

NOT_BIPARTITE = "CaGAT diffuses attention from nodes to the same nodes, so bipartite graphs are not possible"


def require_known(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise if an argument has a name that nobody knows."""
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"
            raise TypeError(f"the layer has no argument {name!r}; {hint}")


def require_switch(name: str, value: bool) -> None:
    """Raise unless the value is true or false: to Python, any text but the empty one counts as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r:.80}")


def require_input_size(name: str, value: int) -> None:
    """Raise unless the value is an integer of at least 1, or the -1 that waits for the first input."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be one number, got {value!r:.80}: {NOT_BIPARTITE}")
    if isinstance(value, bool) or (value < 1 and value != -1):
        raise ValueError(
            f"{name} must be an integer of at least 1, or -1 to take it from the first input, got {_shown(value)}"
        )
    _require_at_most(name, value, 2**31 - 1)


def checked_fill_value(fill_value: Any) -> float | Tensor | str | None:
    """The features of self-loops as PyG takes them, if they are numbers, or named by a way to find them."""
    if isinstance(fill_value, str):
        require_choice("fill_value", fill_value, ("mean", "add", "sum", "min", "max", "mul"))
    elif isinstance(fill_value, Tensor):
        require_dense("fill_value", fill_value)
        if fill_value.is_complex() or not fill_value.isfinite().all():
            raise ValueError("fill_value must hold real, finite numbers; pass torch.nan_to_num(fill_value.real)")
    elif fill_value is not None:
        require_within("fill_value", fill_value, -LARGEST, LARGEST)
        return float(fill_value)  # PyG does not know all of NumPy's numbers.
    return cast("Tensor | str | None", fill_value)


def require_sizes(**sizes: int) -> None:
    """Raise unless each argument, which is named, is an integer of at least 1."""
    for name, value in sizes.items():
        require_size(name, value)


def require_count(name: str, value: int, most: int = 2**31 - 1) -> None:
    """Raise unless the value is an integer from 0 to ``most``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be an integer not below 0, got {_shown(value)}")
    _require_at_most(name, value, most)


def require_size(name: str, value: int, most: int = 2**31 - 1) -> None:
    """Raise unless the value is an integer from 1 to ``most``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {_shown(value)}")
    _require_at_most(name, value, most)


def _require_at_most(name: str, value: int, most: int) -> None:
    if value > most:
        raise ValueError(f"{name} must be at most {most}, got {_shown(value)}")


def require_within(name: str, value: Any, low: float, high: float) -> None:
    """Raise unless the value is a number of the range, its ends included."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    # A comparison with NaN is false.
    number: Any = value
    if not low <= number <= high:
        raise ValueError(f"{name} must be in [{low}, {high}], got {_shown(value)}")


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _shown(value: Any) -> str:
    """A value in a message, cut to a line; Python refuses to print numbers of very many digits."""
    if isinstance(value, int) and abs(value) >= 2**100:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.80}"
