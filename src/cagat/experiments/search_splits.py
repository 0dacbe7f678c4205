"""Which nodes a search trains on, and which it judges by."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat import data
from cagat.data.splits import Split, small_classes
from cagat.errors import DatasetError
from cagat.training.problem import DEFAULT_LABELS

VAL_SHARE = 0.25
"""How much of every class validates if nobody says how many nodes shall."""


def paper_split(graph: Data, labels: int, val_labels: int | None, seed: int, *, keep_small: bool = False) -> Split:
    """The split of the paper's protocol, drawn from all labelled nodes; small classes may give what they have."""
    val_count = DEFAULT_LABELS if val_labels is None else val_labels
    return data.split(graph.y, labels, val_count, seed, class_names=graph.class_names, keep_small=keep_small)


def search_split(graph: Data, labels: int | None, val_labels: int | None, seed: int) -> Split:
    """The training and validation nodes of one fit of a search; the test nodes are those that it leaves alone.

    A graph that comes with a split keeps its test nodes. Without any number, its training and validation nodes are
    taken as they are; otherwise, or if none of them is for validation, both are drawn from the two together. Of any
    other graph, `labels` nodes of every class train, and without a number all labelled nodes take part.

    A class that has fewer nodes than it should give divides what it has in the same ratio; its only node trains.

    Args:
        graph: The graph.
        labels: Training nodes per class.
        val_labels: Validation nodes per class.
        seed: The seed of the drawing; a split that is taken as it is does not depend on it.

    Raises:
        DatasetError: There are too few nodes, or none to judge by.
    """
    if not hasattr(graph, "train_mask"):
        pool, test = (graph.y >= 0).nonzero().flatten(), torch.empty(0, dtype=torch.int64)
        if labels is not None:
            wanted = labels + (DEFAULT_LABELS if val_labels is None else val_labels)
            if int(torch.unique(graph.y[pool], return_counts=True)[1].min()) >= wanted:
                return paper_split(graph, labels, val_labels, seed)
            train, val = _drawn(graph.y, pool, labels, val_labels, seed)
            return _judging(Split(train, val, pool[~torch.isin(pool, torch.cat([train, val]))]))
    else:
        given = data.split_given(graph)
        if labels is None and val_labels is None and len(given.val):
            return given
        pool, test = torch.cat([given.train, given.val]).sort().values, given.test
    return _judging(Split(*_drawn(graph.y, pool, labels, val_labels, seed), test))


def _judging(split: Split) -> Split:
    """A split that has nodes to judge by."""
    if len(split.val) == 0:
        raise DatasetError(
            "No class has two labelled nodes that a search may use, so none is left to judge by. Label at least one "
            "more node of each class."
        )
    return split


def _drawn(y: Tensor, pool: Tensor, labels: int | None, val_labels: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """Training and validation nodes from a pool, by class; a pure function, as :func:`cagat.data.split` is."""
    order = np.random.RandomState(seed).permutation(pool.numpy())
    classes, train, val = y.numpy()[order], [order[:0]], [order[:0]]
    for number in np.unique(classes):
        members = order[classes == number]
        first, second = _counts(len(members), labels, val_labels)
        train.append(members[:first])
        val.append(members[first : first + second])
    return torch.from_numpy(np.sort(np.concatenate(train))), torch.from_numpy(np.sort(np.concatenate(val)))


def _counts(size: int, labels: int | None, val_labels: int | None) -> tuple[int, int]:
    """How many of so many nodes of a class train and validate."""
    if size < 2:
        return size, 0
    if labels is None:
        # Where all that is not for validation trains, that is at least half.
        val = int(VAL_SHARE * size + 0.5) if val_labels is None else min(val_labels, size // 2)
        return size - max(1, val), max(1, val)
    # A number that nobody gave does not cost training nodes that somebody asked for.
    val = min(DEFAULT_LABELS, max(1, size - labels)) if val_labels is None else val_labels
    if labels + val > size:
        val = max(1, size * val // (labels + val))
    return min(labels, size - val), val


def nodes_used(graph: Data, labels: int | None, val_labels: int | None, splits: int) -> str:
    """What a search does with the labelled nodes of a graph, in a sentence or two."""
    split = search_split(graph, labels, val_labels, 0)
    labelled = int((graph.y >= 0).sum())
    each = "one split" if splits == 1 else f"each of {splits} splits"
    used = f"{len(split.train)} nodes train and {len(split.val)} validate"
    if not hasattr(graph, "train_mask"):
        text = f"{used} in {each}, drawn from {labelled} labelled nodes"
        # Every split is drawn from all of them anew, so what one leaves out, another may use.
        out = "take no part" if splits == 1 else "are left out of that split, but may be in another"
        text += f"; the other {len(split.test)} {out}." if len(split.test) else ", which all take part."
    else:
        given = data.split_given(graph)
        if labels is None and val_labels is None and len(given.val):
            weights = "one start" if splits == 1 else f"{splits} starts"
            text = f"{used}, as its own split says; every configuration is tried from {weights}"
        else:
            text = f"{used} in {each}, drawn from the {len(given.train) + len(given.val)} training and validation "
            text += "nodes of its own split"
        text += f"; its {len(given.test)} test nodes take no part."
    return f"{graph.name}: {text}{_small_classes(graph, split, labels, val_labels)}"


def _small_classes(graph: Data, split: Split, labels: int | None, val_labels: int | None) -> str:
    """Which classes give fewer nodes than the others."""

    def short(nodes: Tensor, wanted: int) -> Iterable[int]:
        counts = torch.bincount(graph.y[nodes], minlength=len(graph.class_names))
        return (counts < wanted).nonzero().flatten().tolist()

    if hasattr(graph, "train_mask") and labels is None and val_labels is None:
        return ""
    small = sorted({*short(split.train, labels or 1), *short(split.val, val_labels or 1)})
    return small_classes([repr(graph.class_names[number]) for number in small])


def labels_and_split(graph: Data) -> tuple[Tensor, ...]:
    """What else than features and edges tells one search on a graph from another: labels, and a split if it has one."""
    if not hasattr(graph, "train_mask"):
        return (graph.y,)
    split = data.split_given(graph)
    return (graph.y.index_fill(0, split.test, -1), *split)
