"""Arrays of the right type and shape, from arrays that nobody has checked yet."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.errors import DatasetError


def as_array(what: str, given: Any) -> NDArray[Any]:
    """Whatever numbers somebody gave as an array, if their rows are of one length."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DatasetError(
            f"{what} must be an array of numbers, but is a {type(given).__name__} that is none ({error}). Give rows of "
            "one length each."
        ) from error


def as_int64(what: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return a copy as int64, if it holds integers and has the shape, where `None` stands for any length."""
    fits = len(array.shape) == len(shape) and all(
        expected in (None, length) for length, expected in zip(array.shape, shape, strict=True)
    )
    if array.dtype.kind not in "iu" or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise DatasetError(
            f"{what} must be integers of shape ({wanted}), but has type {array.dtype} and shape {array.shape}."
        )
    return array.astype(np.int64)


def as_float32(what: str, array: NDArray[Any], dimensions: int = 1) -> NDArray[np.float32]:
    """Return a copy as float32, if it holds numbers; what is too large becomes infinite, which is refused later."""
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise DatasetError(
            f"{what} must be numbers in {dimensions} dimension{'s' if dimensions > 1 else ''}, "
            f"but has type {array.dtype} and shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float32)
