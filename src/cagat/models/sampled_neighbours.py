"""A few of each node's neighbours, drawn at random."""

from typing import NamedTuple

import torch
from torch import Tensor

from cagat.kernels import CSRPattern


class SampledNeighbours(NamedTuple):
    """The entries of a sparse matrix that were drawn from some of its rows.

    Attributes:
        row: For each entry drawn, which of the asked rows it is from, counted from 0; ascending.
        entry: The number of the entry.
        ratio: For each asked row, how many entries it has for each one drawn: R, at least 1.
    """

    row: Tensor
    entry: Tensor
    ratio: Tensor


def all_neighbours(pattern: CSRPattern, nodes: Tensor) -> SampledNeighbours:
    """All entries of some rows."""
    first = pattern.rowptr[nodes].long()
    count = pattern.rowptr[nodes + 1].long() - first
    row = torch.repeat_interleave(torch.arange(nodes.numel(), device=nodes.device), count)
    start = count.cumsum(0) - count
    entry = torch.arange(row.numel(), device=nodes.device) + (first - start)[row]
    return SampledNeighbours(row, entry, torch.ones_like(count, dtype=torch.get_default_dtype()))


def sample_neighbours(pattern: CSRPattern, nodes: Tensor, count: int) -> SampledNeighbours:
    """Draw entries of some rows, each set of `count` alike, none twice; all entries of a row that has no more.

    All rows are drawn at once: their entries are put in a random order within the row, and the first ones stay.
    """
    everything = all_neighbours(pattern, nodes)
    size = torch.bincount(everything.row, minlength=nodes.numel())
    # In float64 the order of 2**52 / n random numbers is kept apart within each of n rows.
    order = (everything.row + torch.rand(everything.row.numel(), dtype=torch.float64, device=nodes.device)).argsort()
    place = torch.arange(order.numel(), device=nodes.device) - (size.cumsum(0) - size)[everything.row]
    kept = place < count
    ratio = size / size.clamp(max=count)
    return SampledNeighbours(everything.row[kept], everything.entry[order][kept], ratio)
