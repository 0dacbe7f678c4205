"""Which nodes are trained on, validated on and tested on."""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cagat.data.graph import SPLIT_NAMES, numbered
from cagat.errors import DatasetError

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Split(NamedTuple):
    """Three disjoint sets of labelled nodes, each a sorted int64 tensor of node numbers."""

    train: Tensor
    val: Tensor
    test: Tensor

    def masks(self, num_nodes: int) -> dict[str, Tensor]:
        """The same as `train_mask`, `val_mask` and `test_mask`, the boolean vectors that PyG's examples use."""
        none = torch.zeros(num_nodes, dtype=torch.bool)
        return {f"{part}_mask": none.index_fill(0, nodes, True) for part, nodes in self._asdict().items()}


def split(
    y: Tensor,
    train_per_class: int = 20,
    val_per_class: int = 20,
    seed: int = 0,
    *,
    class_names: Sequence[str] | None = None,
    keep_small: bool = False,
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
        keep_small: Whether a class that has too few nodes gives what it has, in the same proportions and at least one
            for training, instead of being refused.

    Raises:
        DatasetError: A class has too few nodes to leave at least one for test; it is named.
    """
    whole = isinstance(train_per_class, Integral) and isinstance(val_per_class, Integral)
    if not whole or train_per_class < 1 or val_per_class < 0:
        wanted = "whole numbers train_per_class >= 1 and val_per_class >= 0"
        raise DatasetError(f"A split needs {wanted}, but they are {train_per_class} and {val_per_class}.")
    asked = f"{train_per_class} for training, {val_per_class} for validation and at least one for test"

    def counts(size: int) -> tuple[int, int]:
        wanted = train_per_class + val_per_class
        if not keep_small or size > wanted:
            return train_per_class, val_per_class
        for_train = max(1, size * train_per_class // (wanted + 1))
        return for_train, min(size * val_per_class // (wanted + 1), max(0, size - for_train - 1))

    return _draw(y, seed, class_names, counts, asked, keep_small)


def split_fractions(
    y: Tensor,
    train: float = 0.1,
    val: float = 0.1,
    seed: int = 0,
    *,
    class_names: Sequence[str] | None = None,
    keep_small: bool = False,
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
        keep_small: Whether a class that is too small to have a node in each part gives what it has, at least one for
            training, instead of being refused.

    Raises:
        DatasetError: A class is too small to have a node in each part; it is named.
    """
    if not (isinstance(train, Real) and isinstance(val, Real) and train > 0 and val >= 0 and train + val < 1):
        wanted = "numbers train > 0, val >= 0 and train + val < 1"
        raise DatasetError(f"A split by fractions needs {wanted}, but they are {train!r:.80} and {val!r:.80}.")

    def counts(size: int) -> tuple[int, int]:
        first, second = int(train * size + 0.5), int(val * size + 0.5)
        if keep_small:
            return max(1, first), min(second, max(0, size - max(1, first)))
        # A part without any node counts as too large, which is refused.
        return (first, second) if first and (second or not val) else (size, 0)

    asked = f"{train:g} of them for training, {val:g} for validation, and at least one in each and for test"
    return _draw(y, seed, class_names, counts, asked, keep_small)


def _draw(
    y: Tensor,
    seed: int,
    class_names: Sequence[str] | None,
    counts: Callable[[int], tuple[int, int]],
    asked: str,
    keep_small: bool = False,
) -> Split:
    """Shuffle the labelled nodes and take the first of each class: as many as `counts` says of a class of a size."""
    if not isinstance(y, Tensor):
        raise DatasetError(f"Labels must be a tensor, but are a {type(y).__name__}. Convert with torch.as_tensor(y).")
    labels = y.detach().cpu().numpy()
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DatasetError(f"Labels must be one integer per node, but have shape {tuple(y.shape)} and type {y.dtype}.")
    if not isinstance(seed, Integral) or not 0 <= seed < 2**32:
        raise DatasetError(f"The seed of a split must be 0 to {2**32 - 1}, but is {seed}.")
    order = np.flatnonzero(labels >= 0).astype(np.int64)
    if len(order) == 0:
        raise DatasetError("No node has a label, so there is nothing to split. Label some nodes of each class.")
    np.random.RandomState(seed).shuffle(order)
    drawn = []
    for label in range(int(labels.max()) + 1):
        members = order[labels[order] == label]
        train, val = counts(len(members))
        if train + val >= len(members) and not keep_small:
            name = str(label) if class_names is None else f"{class_names[label]!r}"
            raise DatasetError(
                f"Class {name} has {len(members)} labelled nodes, too few for {asked}. Ask for fewer, or merge or "
                "remove the class."
            )
        drawn.append(np.split(members, [train, train + val]))
    return Split(*(torch.from_numpy(np.sort(np.concatenate(part))) for part in zip(*drawn, strict=True)))


def small_classes(names: Sequence[str]) -> str:
    """A sentence that names classes with fewer nodes than they should give; nothing if there are none."""
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f" Smaller classes give what they have: {', '.join(names[:5])}{rest}." if names else ""


def split_given(data: "Data", path: str | Path | None = None) -> Split:
    """The split that the user gave: in a file, or with the graph itself.

    Args:
        data: The graph. Without a path its `train_mask`, `val_mask` and `test_mask` are used, which `load` sets when
            the graph came with a split (a `splits` table, or a `split` column in the table of labels).
        path: A CSV, TSV or Parquet file with the columns `node` and `split` (`train`, `val`, `test` or nothing).

    Raises:
        DatasetError: There is no split, it names an unknown node, puts a node without a label into a part, or leaves
            training empty.
    """
    names = getattr(data, "node_names", None) or numbered(int(data.num_nodes))
    if path is not None:
        given = _from_file(names, Path(path))
    else:
        masks = [getattr(data, f"{part}_mask", None) for part in SPLIT_NAMES]
        if all(mask is None for mask in masks):
            raise DatasetError("The graph has no split of its own. Give a file, or draw one with cagat.data.split.")
        none = torch.empty(0, dtype=torch.int64)
        given = Split(*(none if mask is None else mask.nonzero().flatten() for mask in masks))
    for part, nodes in given._asdict().items():
        if len(nodes) == 0 and part == "train":
            raise DatasetError("The given split has no train nodes. Name some.")
        unlabelled = nodes[data.y[nodes] < 0]
        if len(unlabelled):
            raise DatasetError(
                f"The given split puts node {names[int(unlabelled[0])]!r} into {part}, but it has no label "
                f"({len(unlabelled)} such nodes). Give labels or take the nodes out of the split."
            )
    return given


def _from_file(names: list[str], path: Path) -> Split:
    from cagat.data.table_files import read_table
    from cagat.data.tables import node_rows, split_codes

    table, number = read_table(path, "splits"), {name: node for node, name in enumerate(names)}
    rows = node_rows(table, number, once=True)
    if unknown := list(number)[len(names) :]:
        raise DatasetError(f"{path}: node {unknown[0]!r} is not in the graph ({len(unknown)} such nodes). Remove it.")
    codes = split_codes(table, rows, len(names))
    return Split(*(torch.from_numpy(np.flatnonzero(codes == code)) for code in (1, 2, 3)))
