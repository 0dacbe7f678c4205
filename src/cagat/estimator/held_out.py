"""Which labelled nodes are held out to stop the training."""

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from cagat.errors import ConfigError


def hold_out(
    numbers: NDArray[np.int64], fraction: float, random: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split the labelled nodes into training and validation nodes, the same fraction of every class.

    A class with n labelled nodes gives `fraction * n` of them to validation, rounded, and keeps at least one. If
    that makes fewer validation nodes than there are classes, they would tell nothing: then there are none.

    Args:
        numbers: The class of each node, -1 for none.
        fraction: At least 0 and less than 1.
        random: What is drawn from.

    Returns:
        The training nodes and the validation nodes, each in order.
    """
    if not isinstance(fraction, Real) or not 0 <= fraction < 1:
        raise ConfigError(f"validation_fraction must be at least 0 and less than 1, got {fraction!r:.80}.")
    classes = int(numbers.max()) + 1
    held = []
    for number in range(classes):
        members = random.permutation(np.flatnonzero(numbers == number))
        held.append(members[: min(int(fraction * len(members) + 0.5), len(members) - 1)])
    val = np.sort(np.concatenate(held)).astype(np.int64)
    if len(val) < classes:
        val = val[:0]
    return np.setdiff1d(np.flatnonzero(numbers >= 0), val).astype(np.int64), val
