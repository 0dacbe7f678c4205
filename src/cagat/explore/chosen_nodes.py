"""Which nodes get rows of their own."""

import numpy as np

from cagat.errors import ConfigError
from cagat.explore.subject import Integers, Subject

ALL_UP_TO = 3000
SAMPLE = 400


def chosen_nodes(
    subject: Subject, count: int | None = None, wanted: tuple[str, ...] = (), *, tested: bool = False
) -> Integers:
    """The nodes whose rows of S are computed, in ascending order.

    A row of S has a number for every node of the graph, so that rows of all nodes can be had on small graphs only.

    Args:
        subject: The run.
        count: How many, drawn with a fixed seed, test nodes first (default: all on graphs of at most 3000 nodes, else
            400).
        wanted: Names of nodes that must be among them, beside the others.
        tested: Whether to choose among test nodes only.

    Raises:
        ConfigError: The count is below 1.
        DatasetError: A name is not that of a node.
    """
    size = len(subject.names)
    if count is None:
        count = size if size <= ALL_UP_TO else SAMPLE
    if count < 1:
        raise ConfigError(f"The number of nodes must be at least 1, but is {count}.")
    order = np.random.default_rng(0).permutation(size)
    is_test = np.array([part == "test" for part in subject.parts])
    first, rest = order[is_test[order]], order[~is_test[order]]
    pool = first if tested else np.concatenate([first, rest])
    named = np.array([subject.node(name) for name in wanted], dtype=np.int64)
    return np.unique(np.concatenate([pool[:count], named]).astype(np.int64))
