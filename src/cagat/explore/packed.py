"""Arrays as short text inside a page."""

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

_KINDS = (("Uint8", np.uint8), ("Int16", np.int16), ("Int32", np.int32))


def packed_integers(values: npt.ArrayLike) -> dict[str, Any]:
    """Whole numbers, in the narrowest type that holds them."""
    array = np.asarray(values, dtype=np.int64).ravel()
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for name, kind in _KINDS:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return {"kind": name, "data": _text(array.astype(f"<{np.dtype(kind).str[1:]}")), "scale": 1}
    raise OverflowError(f"{high} does not fit into 32 bits")


def packed_numbers(values: npt.ArrayLike) -> dict[str, Any]:
    """Numbers, rounded to 1 / 32767 of the largest."""
    array = np.nan_to_num(np.asarray(values, dtype=np.float64).ravel())
    largest = float(np.abs(array).max()) if array.size else 0.0
    scale = largest / 32767 or 1.0
    return {"kind": "Int16", "data": _text(np.rint(array / scale).astype("<i2")), "scale": scale}


def _text(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
