"""How features lie in memory while compiled passes work on them."""

import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# The sums of a panel of a row should fill half of sixteen registers of 32 bytes; wider panels, measured at 192 lanes,
# spill and are many times slower.
_PANEL_BYTES = 256
_SMALLEST_PANEL = 4


class RowLayout(NamedTuple):
    """Rows of ``channels x heads`` numbers, both padded with zeros so that panels of rows are powers of two.

    Padding costs less than the remainders of odd sizes, and the few powers of two need few compilations: seven classes
    and five classes share their machine code. Made by :func:`row_layout`.

    Attributes:
        heads: The number of heads.
        channels: The number of channels of a head.
        dtype: What the numbers are.
        padded_heads: The number of heads, rounded up to a power of two.
        lanes: The size of a panel: few registers in all, and few panels, of which each costs about as much as two more.
        panels: The number of panels of a row.
        width: The length of a row.
        is_possible: Whether there are steps for such rows.
        is_exact: Whether nothing is padded, so that features are laid out within registers.
    """

    heads: int
    channels: int
    dtype: torch.dtype
    padded_heads: int
    lanes: int
    panels: int
    width: int
    is_possible: bool
    is_exact: bool

    def rows(self, features: Tensor) -> Tensor:
        """Features of shape ``(n, heads, channels)`` as rows ``(panels, n, lanes)``."""
        padding = (0, self.padded_heads - self.heads, 0, self.width // self.padded_heads - self.channels)
        rows = features.transpose(1, 2)
        rows = F.pad(rows, padding) if any(padding) else rows
        return rows.reshape(features.size(0), self.panels, self.lanes).transpose(0, 1)

    def features(self, rows: Tensor) -> Tensor:
        """What :meth:`rows` were made from."""
        whole = rows.transpose(0, 1).reshape(rows.size(1), self.width // self.padded_heads, self.padded_heads)
        return whole[:, : self.channels, : self.heads].transpose(1, 2).contiguous()

    def values(self, values: Tensor) -> Tensor:
        """Values of shape ``(entries, heads)`` with heads as they are in a row."""
        padding = self.padded_heads - self.heads
        return (F.pad(values, (0, padding)) if padding else values).contiguous()

    def unpadded(self, values: Tensor) -> Tensor:
        """What :meth:`values` were made from."""
        return values[:, : self.heads].contiguous()


@cache
def row_layout(heads: int, channels: int, dtype: torch.dtype) -> RowLayout:
    """The layout for so many heads and channels."""
    padded_heads, itemsize = 1 << max(0, heads - 1).bit_length(), dtype.itemsize
    needed, lanes, lowest = channels * padded_heads, 1, math.inf
    panel = max(padded_heads, _SMALLEST_PANEL)
    while panel * itemsize <= _PANEL_BYTES:
        cost = -(-needed // panel) * (2 + -(-panel * itemsize // 32))
        if cost < lowest:
            lanes, lowest = panel, cost
        panel *= 2
    width = needed + -needed % lanes
    is_possible = heads > 0 and channels > 0 and padded_heads * itemsize <= _PANEL_BYTES
    is_exact = width == heads * channels
    return RowLayout(heads, channels, dtype, padded_heads, lanes, width // lanes, width, is_possible, is_exact)
