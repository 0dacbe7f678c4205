r"""What a few more labels would gain, where what was seen so far allows to say so.

Each estimate of the accuracy judges all nodes that were labelled then, by models that had not seen their labels. A node
that is labelled early is judged again and again, as labels come in: whether it is right more often with more labels is
told apart from how easy it is. With :math:`r_{vi}` whether estimate :math:`i`, of :math:`n_i` labels, has node
:math:`v` right, the slope :math:`s` of

.. math::
    r_{vi} = a_v + s \log_2 n_i + e_{vi}

by least squares is what twice as many labels gain, and :math:`k` more gain :math:`s \log_2 (1 + k / n)`. Its interval
allows for errors of a node that go together, and for errors of an estimate that do.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STEPS = (5, 10, 20, 50, 100)
"""How many more labels are spoken of: the fewest that gain a point, and no more than there are."""

FEWEST_ESTIMATES = 4
FEWEST_NODES = 20
"""Nodes that were judged more than once."""


class Seen(NamedTuple):
    """An estimate of a model with so many labels: which nodes were judged, and which of them were right."""

    labels: int
    nodes: NDArray[np.int64]
    right: NDArray[np.bool_]


class Gain(NamedTuple):
    """What so many more labels gain, as a share, and the ends of its 95 % interval."""

    labels: int
    share: float
    low: float
    high: float


def gain_of_more(labels: int, seen: Sequence[Seen]) -> Gain | None:
    """What a few more than so many labels gain; nothing where it might as well be nothing."""
    slope = _slope(seen)
    if slope is None:
        return None
    share, half = slope
    for more in STEPS:
        doublings = math.log2(1 + more / labels)
        if more <= labels and share * doublings >= 0.01 and share > half:
            return Gain(more, share * doublings, (share - half) * doublings, (share + half) * doublings)
    return None


def _slope(seen: Sequence[Seen]) -> tuple[float, float] | None:
    """What twice as many labels gain, and half of the 95 % interval of that."""
    if len(seen) < FEWEST_ESTIMATES:
        return None
    from scipy.special import stdtrit

    nodes = np.concatenate([one.nodes for one in seen])
    right = np.concatenate([one.right for one in seen]).astype(np.float64)
    estimate = np.repeat(np.arange(len(seen)), [len(one.nodes) for one in seen])
    x = np.log2([one.labels for one in seen])[estimate]
    _, node, counts = np.unique(nodes, return_inverse=True, return_counts=True)
    again = int((counts > 1).sum())
    if again < FEWEST_NODES:
        return None
    x, right = (values - (np.bincount(node, values) / counts)[node] for values in (x, right))
    spread = float(x @ x)
    if spread == 0:
        return None
    share = float(x @ right) / spread
    scores = x * (right - share * x)
    variances = []
    for groups in (node, estimate):
        sums = np.bincount(groups, scores)
        many = again if groups is node else len(seen)
        variances.append(many / (many - 1) * float(sums @ sums) / spread**2)
    quantile = float(stdtrit(len(seen) - 1, 0.975))
    return share, quantile * math.sqrt(max(variances))
