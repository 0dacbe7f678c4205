"""How features lie in memory while compiled passes work on them."""

import math
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

# The sums of a part of a row should fill half of sixteen registers of 32 bytes; wider parts, measured at 192 lanes,
# spill and are many times slower.
_PART_BYTES = 256
_SMALLEST_PART = 4


@dataclass(frozen=True)
class RowLayout:
    """Rows of ``channels x heads`` numbers, both padded with zeros so that parts of rows are powers of two.

    Padding costs less than the remainders of odd sizes, and the few powers of two need few compilations: seven classes
    and five classes share their machine code.

    Attributes:
        heads: The number of heads.
        channels: The number of channels of a head.
        dtype: What the numbers are.
    """

    heads: int
    channels: int
    dtype: torch.dtype

    @cached_property
    def padded_heads(self) -> int:
        """The number of heads, rounded up to a power of two."""
        return 1 << max(0, self.heads - 1).bit_length()

    @cached_property
    def is_possible(self) -> bool:
        """Whether there are steps for such rows."""
        return self.heads > 0 and self.channels > 0 and self.padded_heads * self.dtype.itemsize <= _PART_BYTES

    @cached_property
    def lanes(self) -> int:
        """The size of a part: few registers in all, and few parts, of which each costs about as much as two more."""
        return _lanes(self.padded_heads, self.channels * self.padded_heads, self.dtype.itemsize)

    @cached_property
    def width(self) -> int:
        """The length of a row."""
        needed = self.channels * self.padded_heads
        return needed + -needed % self.lanes

    @cached_property
    def parts(self) -> int:
        """The number of parts of a row."""
        return self.width // self.lanes

    @cached_property
    def is_exact(self) -> bool:
        """Whether nothing is padded, so that features are laid out within registers."""
        return self.width == self.heads * self.channels

    def rows(self, features: Tensor) -> Tensor:
        """Features of shape ``(n, heads, channels)`` as rows ``(parts, n, lanes)``."""
        padding = (0, self.padded_heads - self.heads, 0, self.width // self.padded_heads - self.channels)
        rows = features.transpose(1, 2)
        rows = F.pad(rows, padding) if any(padding) else rows
        return rows.reshape(features.size(0), self.parts, self.lanes).transpose(0, 1)

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
def _lanes(heads: int, needed: int, itemsize: int) -> int:
    best, lowest = 0, math.inf
    part = max(heads, _SMALLEST_PART)
    while part * itemsize <= _PART_BYTES:
        cost = -(-needed // part) * (2 + -(-part * itemsize // 32))
        if cost < lowest:
            best, lowest = part, cost
        part *= 2
    return best


row_layout = cache(RowLayout)
"""The layout for so many heads and channels of a dtype, made once."""
