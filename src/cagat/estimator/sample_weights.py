"""How much each row counts in a score."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.errors import DatasetError


def checked_weights(sample_weight: Any, rows: int) -> NDArray[Any]:
    """The weights as a vector of numbers, one a row."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"sample_weight must be {rows} numbers, one a row of X, but is {sample_weight!r:.80}."
        ) from error
    if weights.shape != (rows,):
        raise DatasetError(
            f"sample_weight has shape {weights.shape}, but X has {rows} rows. Give one weight a row, shape ({rows},)."
        )
    return weights
