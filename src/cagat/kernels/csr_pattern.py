"""Where the entries of a sparse matrix are, by rows and by columns."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CSRPattern:
    """The positions of the entries of a sparse matrix, and of its transpose.

    The entries are numbered along the rows, columns ascending within a row. Every product takes and gives values in
    this one order, transposed or not: :attr:`perm_t` leads from the transpose's order back to it.

    Attributes:
        rowptr: Entries ``rowptr[i]:rowptr[i + 1]`` are row ``i``, shape ``(num_rows + 1,)``.
        col: The column of each entry.
        rowptr_t: As :attr:`rowptr`, for the transpose.
        col_t: As :attr:`col`, for the transpose.
        perm_t: The number of the entry that is the ``e``-th entry of the transpose.

    If the pattern is symmetric, as that of an undirected graph is, the transpose's pointers and columns are the very
    same tensors.
    """

    rowptr: Tensor
    col: Tensor
    rowptr_t: Tensor
    col_t: Tensor
    perm_t: Tensor

    @classmethod
    def from_sorted(cls, row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> "CSRPattern":
        """Build the pattern from entries sorted by row, then by column, none twice."""
        _require_range("row", row, num_rows)
        _require_range("column", col, num_cols)
        # Indices of 32 bits halve the index traffic of every product.
        wide = max(num_rows, num_cols, row.numel()) > torch.iinfo(torch.int32).max
        dtype = torch.int64 if wide else torch.int32
        perm_t = torch.sort(col, stable=True).indices
        rowptr, rowptr_t = _row_pointers(row, num_rows, dtype), _row_pointers(col[perm_t], num_cols, dtype)
        columns, columns_t = col.to(dtype), row[perm_t].to(dtype)
        if torch.equal(rowptr, rowptr_t) and torch.equal(columns, columns_t):
            rowptr_t, columns_t = rowptr, columns
        return cls(rowptr, columns, rowptr_t, columns_t, perm_t.to(dtype))

    @property
    def num_rows(self) -> int:
        """The number of rows of the matrix."""
        return self.rowptr.numel() - 1

    @property
    def num_cols(self) -> int:
        """The number of columns of the matrix."""
        return self.rowptr_t.numel() - 1

    @property
    def num_entries(self) -> int:
        """The number of entries of the matrix."""
        return self.col.numel()

    @property
    def is_symmetric(self) -> bool:
        """Whether every entry has its mirror image, known by what the transpose shares and not by comparing."""
        shares = (self.rowptr, self.rowptr_t), (self.col, self.col_t)
        return all(own.data_ptr() == transposed.data_ptr() for own, transposed in shares)

    def tensors(self) -> list[Tensor]:
        """The tensors that make up the pattern, as torch operators take it; ``CSRPattern(*tensors)`` reverses this."""
        return [self.rowptr, self.col, self.rowptr_t, self.col_t, self.perm_t]

    def rows(self) -> Tensor:
        """The row of each entry, as int64."""
        rows = torch.arange(self.num_rows, device=self.col.device)
        return torch.repeat_interleave(rows, self.rowptr.diff(), output_size=self.num_entries)

    def entries_of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The entries of some rows, in the order of these: which of the rows each is in, and its number."""
        start, count = self.rowptr.long()[rows], self.rowptr.diff().long()[rows]
        position = torch.repeat_interleave(torch.arange(rows.numel(), device=rows.device), count)
        before = count.cumsum(0) - count
        return position, torch.arange(position.numel(), device=rows.device) + (start - before)[position]

    def to(self, device: torch.device | str) -> "CSRPattern":
        """The same pattern on another device."""
        rowptr, col = self.rowptr.to(device), self.col.to(device)
        shared = (rowptr, col) if self.is_symmetric else (self.rowptr_t.to(device), self.col_t.to(device))
        return CSRPattern(rowptr, col, *shared, self.perm_t.to(device))


def _require_range(name: str, indices: Tensor, size: int) -> None:
    if indices.numel():
        low, high = (int(extreme) for extreme in indices.aminmax())
        if low < 0 or high >= size:
            wrong = low if low < 0 else high
            raise IndexError(f"there is an entry in {name} {wrong} of a matrix with {size} {name}s, numbered from 0")


def _row_pointers(sorted_rows: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
    counts = torch.bincount(sorted_rows, minlength=num_rows)
    return torch.cat([counts.new_zeros(1), counts.cumsum(dim=0)]).to(dtype)
