"""Which nodes are trained on, validated on and tested on."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.errors import DatasetError


class Split(NamedTuple):
    """Three disjoint sets of labelled nodes, each a sorted int64 tensor of node numbers."""

    train: Tensor
    val: Tensor
    test: Tensor

    def masks(self, num_nodes: int) -> dict[str, Tensor]:
        """The same as `train_mask`, `val_mask` and `test_mask`, the boolean vectors that PyG's examples use."""
        masks = {}
        for part, nodes in self._asdict().items():
            mask = torch.zeros(num_nodes, dtype=torch.bool)
            mask[nodes] = True
            masks[f"{part}_mask"] = mask
        return masks


def split(
    y: Tensor,
    train_per_class: int = 20,
    val_per_class: int = 20,
    seed: int = 0,
    *,
    class_names: Sequence[str] | None = None,
) -> Split:
    """Draw a split with the same number of training nodes in every class, as in the paper's protocol.

    A pure function of its arguments, on any machine: all labelled nodes are put in a random order by NumPy's
    `RandomState(seed)`, whose stream NumPy has promised never to change; of each class the first `train_per_class`
    in that order train, the next `val_per_class` validate, and the rest is for test. So for one seed a larger
    training set contains every smaller one.

    Args:
        y: The class of each node, -1 for none. Unlabelled nodes are in no part.
        train_per_class: Training nodes in each class.
        val_per_class: Validation nodes in each class.
        seed: 0 to 2**32 - 1.
        class_names: Used in errors only.

    Raises:
        DatasetError: A class has too few nodes to leave at least one for test; it is named.
    """
    labels, order = _shuffled(y, seed)
    whole = isinstance(train_per_class, Integral) and isinstance(val_per_class, Integral)
    if not whole or train_per_class < 1 or val_per_class < 0:
        raise DatasetError(
            f"A split needs whole numbers train_per_class >= 1 and val_per_class >= 0, but they are {train_per_class} "
            f"and {val_per_class}."
        )
    wanted = train_per_class + val_per_class
    train, val = [], []
    for label in range(int(labels.max(initial=-1)) + 1):
        members = order[labels[order] == label]
        if len(members) <= wanted:
            raise DatasetError(
                f"Class {_name(label, class_names)} has {len(members)} labelled nodes, but {train_per_class} for "
                f"training, {val_per_class} for validation and at least one for test make {wanted + 1}. "
                "Ask for fewer nodes a class, or merge or remove the class."
            )
        train.append(members[:train_per_class])
        val.append(members[train_per_class:wanted])
    return _parts(labels, np.concatenate(train), np.concatenate(val))


def split_fractions(
    y: Tensor,
    train: float = 0.1,
    val: float = 0.1,
    seed: int = 0,
    *,
    class_names: Sequence[str] | None = None,
) -> Split:
    """Draw a split that takes the same fraction of every class.

    As in :func:`split`, a pure function of its arguments. Of a class with n nodes, `round(train * n)` train and
    `round(val * n)` validate, where a half is rounded up.

    Args:
        y: The class of each node, -1 for none. Unlabelled nodes are in no part.
        train: Fraction of training nodes, more than 0.
        val: Fraction of validation nodes; together they must leave some nodes for test.
        seed: 0 to 2**32 - 1.
        class_names: Used in errors only.

    Raises:
        DatasetError: A class is too small to have a node in each part; it is named.
    """
    labels, order = _shuffled(y, seed)
    if not (isinstance(train, Real) and isinstance(val, Real) and train > 0 and val >= 0 and train + val < 1):
        raise DatasetError(
            f"A split by fractions needs numbers train > 0, val >= 0 and train + val < 1, but they are {train!r:.80} "
            f"and {val!r:.80}."
        )
    parts: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
    for label in range(int(labels.max(initial=-1)) + 1):
        members = order[labels[order] == label]
        first, second = (int(fraction * len(members) + 0.5) for fraction in (train, val))
        if first == 0 or (val > 0 and second == 0) or first + second >= len(members):
            raise DatasetError(
                f"Class {_name(label, class_names)} has {len(members)} labelled nodes, of which {train:g} for training "
                f"and {val:g} for validation make {first} and {second}; each part, and test too, needs at least one. "
                "Choose other fractions, or merge or remove the class."
            )
        parts[0].append(members[:first])
        parts[1].append(members[first : first + second])
    return _parts(labels, np.concatenate(parts[0]), np.concatenate(parts[1]))


def _shuffled(y: Tensor, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The labels, and all labelled nodes in the random order of the seed."""
    if not isinstance(y, Tensor):
        raise DatasetError(f"Labels must be a tensor, but are a {type(y).__name__}. Convert with torch.as_tensor(y).")
    labels = y.detach().cpu().numpy()
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DatasetError(f"Labels must be one integer a node, but have shape {tuple(y.shape)} and type {y.dtype}.")
    if not isinstance(seed, Integral) or not 0 <= seed < 2**32:
        raise DatasetError(f"The seed of a split must be 0 to {2**32 - 1}, but is {seed}.")
    order = np.flatnonzero(labels >= 0).astype(np.int64)
    if len(order) == 0:
        raise DatasetError(
            "No node has a label, so there is nothing to split. Give labels to some nodes of each class."
        )
    np.random.RandomState(seed).shuffle(order)
    return labels, order


def _parts(labels: NDArray[np.int64], train: NDArray[np.int64], val: NDArray[np.int64]) -> Split:
    labelled = np.flatnonzero(labels >= 0)
    test = np.setdiff1d(labelled, np.concatenate([train, val]), assume_unique=True)
    return Split(*(torch.from_numpy(np.sort(part).astype(np.int64)) for part in (train, val, test)))


def _name(label: int, class_names: Sequence[str] | None) -> str:
    return str(label) if class_names is None else f"{class_names[label]!r}"
