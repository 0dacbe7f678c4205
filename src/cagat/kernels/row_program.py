"""Many products in one call of compiled code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.lanes import FAR, NEAR
from cagat.kernels.row_interpreter import interpreter
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_table import Field, Op
from cagat.kernels.row_threads import balanced_bounds, number_of_blocks, row_threads
from cagat.kernels.scratch import scratch
from cagat.kernels.thread_count import kernel_threads

_NUMPY_TYPES = {torch.float32: np.float32, torch.float64: np.float64}

# Smaller than that of a product called by itself: within a program threads wait in compiled code, and are awake.
_SMALLEST_BLOCK = 50_000

# Where the rows that a step chooses from take more than this, they come from main memory, or as good as: 5 MB of them
# come as fast if they are asked for late, 15 MB a fifth faster if they are asked for early (docs/performance.md).
CACHED_BYTES = 2**23


class RowProgram:
    """A list of products, run as one.

    A single product on Cora takes less than a tenth of a millisecond. Called one by one from Python, as torch
    operators, they would wait for their callers most of the time, and two threads would do nothing but wake each other.
    A program is written down first, as a table of steps, and then run by all threads in compiled code.

    Args:
        pattern: Where the entries are.
        weights: The shared weights, in the order of the entries and of the transpose's entries, if there are any.
        layout: How the features lie in their rows.

    Attributes:
        is_symmetric: Whether the pattern is, so that steps can read what both sides of it want at once.
    """

    def __init__(self, pattern: CSRPattern, weights: tuple[Tensor, Tensor] | None, layout: RowLayout) -> None:
        self._layout = layout
        self._last = max(0, pattern.num_entries - 1)
        # How many rows steps on either side choose from, and the most that a step that is written down does.
        self._sources = (pattern.num_cols, pattern.num_rows)
        self._most_sources = 0
        self.is_symmetric = pattern.is_symmetric
        self._threads = kernel_threads()
        self._kept: list[Any] = [pattern, weights]
        self._scales: dict[float, int] = {}
        self._steps: list[tuple[int, ...]] = []
        # The blocks of rows of both sides, shared by those of a symmetric pattern.
        blocks = self._blocks(pattern.rowptr)
        blocks_t = blocks if self.is_symmetric else self._blocks(pattern.rowptr_t)
        self._sides = (
            (*blocks, pattern.rowptr.data_ptr(), pattern.col.data_ptr(), 0),
            (*blocks_t, pattern.rowptr_t.data_ptr(), pattern.col_t.data_ptr(), pattern.perm_t.data_ptr()),
        )
        self._weights = (0, 0) if weights is None else (weights[0].data_ptr(), weights[1].data_ptr())

    def aggregate(
        self,
        out: Tensor,
        *,
        x: Tensor | None = None,
        scale_x: float | Tensor = 1.0,
        values: Tensor | None = None,
        y: Tensor | None = None,
        scale_y: float | Tensor = 1.0,
        add: Tensor | None = None,
        scale_add: float | Tensor = 1.0,
        transpose: bool = False,
        wait: bool = True,
    ) -> None:
        """``out = scale_x Abar x + scale_y [values] y + scale_add add``, of which any term may be absent.

        With ``transpose`` the matrices are transposed; there are then not both of them. Unless it is told to wait, the
        next step may begin before this one has ended.
        """
        weight = 0 if x is None else self._weights[transpose]
        self._append(
            Op.AGGREGATE,
            wait=wait,
            transpose=transpose,
            weight=weight,
            values=values,
            x=x,
            y=y,
            add=add,
            out=out,
            scale_x=scale_x,
            scale_y=scale_y,
            scale_add=scale_add,
        )

    def aggregate_twice(
        self,
        out: Tensor,
        out2: Tensor,
        x: Tensor,
        values: Tensor,
        *,
        transpose_x: bool = False,
        scale_x: float | Tensor = 1.0,
        scale_y: float | Tensor = 1.0,
        add: Tensor | None = None,
        scale_add: float | Tensor = 1.0,
    ) -> None:
        """``out = scale_x Abar x`` and ``out2 = scale_y [values] x + scale_add add``, reading x once.

        With ``transpose_x`` it is ``Abar^T x``, and the pattern must be symmetric: only then both have their entries at
        the same places.
        """
        assert self.is_symmetric or not transpose_x
        self._append(
            Op.AGGREGATE_TWICE,
            weight=self._weights[transpose_x],
            values=values,
            x=x,
            add=add,
            out=out,
            out2=out2,
            scale_x=scale_x,
            scale_y=scale_y,
            scale_add=scale_add,
        )

    def aggregate_inner(
        self,
        out: Tensor | None,
        out2: Tensor,
        products: Tensor,
        x: Tensor,
        y: Tensor,
        values: Tensor,
        *,
        scale_x: float | Tensor = 1.0,
        scale_y: float | Tensor = 1.0,
        add: Tensor | None = None,
        scale_products: float | Tensor = 1.0,
    ) -> None:
        """The gradients of products, reading x once.

        ``out = scale_x Abar^T x``, if it is wanted, ``out2 = scale_y [values]^T x + add``, and to ``products``, which
        are in the order of the transpose's entries, the inner products of x and y times ``scale_products`` are added.
        """
        self._append(
            Op.AGGREGATE_INNER,
            transpose=True,
            weight=self._weights[True],
            values=values,
            x=x,
            y=y,
            add=add,
            out=out,
            out2=out2,
            scale_x=scale_x,
            scale_y=scale_y,
            products=products,
            scale_products=scale_products,
        )

    def aggregate_both(self, out: Tensor, values: Tensor, y: Tensor, scale_y: float | Tensor) -> None:
        """``out = scale_y ([values] + [values]^T) y``, in one pass; the pattern must be symmetric.

        The values may be in the order of the entries or of the transpose's entries: their sum is the same.
        """
        assert self.is_symmetric
        self._append(Op.AGGREGATE_BOTH, transpose=True, values=values, y=y, out=out, scale_y=scale_y)

    def add_values(self, out: Tensor, values: Tensor, scale: float | Tensor, wait: bool = True) -> None:
        """``out += scale values``, both at the entries."""
        self._append(Op.ADD_VALUES, wait=wait, x=values, out=out, scale_x=scale)

    def inner(
        self,
        out: Tensor,
        x: Tensor,
        y: Tensor,
        *,
        scale_x: float | Tensor = 1.0,
        add: Tensor | None = None,
        scale_add: float | Tensor = 1.0,
        wait: bool = True,
    ) -> None:
        """``out = scale_x p + scale_add add`` with the inner products p at the entries."""
        self._append(Op.INNER, wait=wait, x=x, y=y, add=add, out=out, scale_x=scale_x, scale_add=scale_add)

    def combine(
        self,
        out: Tensor,
        x: Tensor,
        scale_x: float | Tensor,
        add: Tensor | None = None,
        scale_add: float | Tensor = 1.0,
        wait: bool = True,
    ) -> None:
        """``out = scale_x x + scale_add add``."""
        self._append(Op.COMBINE, wait=wait, x=x, add=add, out=out, scale_x=scale_x, scale_add=scale_add)

    def logits(self, dst: Tensor, src: Tensor, x: Tensor, att_dst: Tensor, att_src: Tensor) -> None:
        """The products of each row with two rows, for each head."""
        self._append(Op.LOGITS, weight=self._address(att_dst), values=att_src, x=x, out=dst, out2=src)

    def add_logits(self, out: Tensor, dst: Tensor, src: Tensor, att_dst: Tensor, att_src: Tensor) -> None:
        """The transpose of :meth:`logits`, added to ``out``."""
        self._append(Op.ADD_LOGITS, weight=self._address(att_dst), values=att_src, x=dst, y=src, out=out)

    def softmax(self, out: Tensor, dst: Tensor, src: Tensor, edge: Tensor | None, slope: float) -> None:
        """GAT's attention, of logits that are vectors of heads."""
        self._append(Op.SOFTMAX, x=dst, y=src, add=edge, out=out, scale_x=slope)

    def softmax_backward(
        self,
        grad_logit: Tensor,
        grad_dst: Tensor,
        dst: Tensor,
        src: Tensor,
        edge: Tensor | None,
        slope: float,
        softmax: Tensor,
        grad: Tensor,
    ) -> None:
        """The gradient of GAT's attention at the logits of the entries and at ``dst``."""
        self._append(
            Op.SOFTMAX_BACKWARD,
            weight=self._address(grad),
            values=softmax,
            x=dst,
            y=src,
            add=edge,
            out=grad_logit,
            out2=grad_dst,
            scale_x=slope,
        )

    def column_sums(self, out: Tensor, values: Tensor) -> None:
        """The sums of the values along the columns of the pattern."""
        self._append(Op.SUM, transpose=True, values=values, out=out)

    def pick(self, out: Tensor, values: Tensor, entries: Tensor) -> None:
        """``out[e] = values[entries[e]]`` at all entries."""
        self._append(Op.PICK, values=entries, x=values, out=out)

    def place(self, out: Tensor, values: Tensor, entries: Tensor) -> None:
        """The reverse of :meth:`pick`: ``out[entries[e]] = values[e]``."""
        self._append(Op.PLACE, values=entries, x=values, out=out)

    def to_rows(self, out: Tensor, features: Tensor, nodes: Tensor) -> None:
        """Lay features of shape ``(n, heads, channels)`` out as rows, where row i is that of node ``nodes[i]``."""
        if self._layout.is_square_cut:
            self._turn(Op.TO_ROWS, out, features.contiguous(), nodes)
        else:  # Outside the program, before it.
            out.copy_(self._layout.rows(features[nodes]))

    def from_rows(self, rows: Tensor, nodes: Tensor) -> Callable[[], Tensor]:
        """The reverse of :meth:`to_rows`: gives the features when the program has been run."""
        layout = self._layout
        features = scratch(rows.size(0), layout.heads, layout.channels, dtype=layout.dtype)
        if not layout.is_square_cut:
            return lambda: features.index_copy_(0, nodes.long(), layout.features(rows))
        self._turn(Op.FROM_ROWS, features, rows, nodes)
        return lambda: features

    def _turn(self, op: Op, out: Tensor, x: Tensor, nodes: Tensor) -> None:
        # The nodes stand where other steps have their values.
        self._append(op, values=nodes, x=x, out=out)

    def run(self) -> None:
        """Do all steps, in their order; those that are added later are for the next call."""
        if not self._steps:
            return
        layout = self._layout
        counters = np.zeros(2 * len(self._steps), dtype=np.int64)
        head = (len(self._steps) + 1, counters.ctypes.data, layout.width, self._last)
        table = np.array([head + (0,) * (len(Field) - len(head)), *self._steps], dtype=np.int64)
        table[-1, Field.WAIT] = 1
        self._kept += (table, counters)
        self._steps = []
        gathered, self._most_sources = self._most_sources * layout.width * layout.dtype.itemsize, 0
        ahead = FAR if gathered > CACHED_BYTES else NEAR
        run = interpreter(_NUMPY_TYPES[layout.dtype], layout.lanes, layout.padded_heads, ahead)
        threads = self._threads if table[1:, Field.BLOCKS].max() > 1 else 1
        row_threads.together(run, table.ctypes.data, threads, keep=self)

    def _append(
        self,
        op: Op,
        *,
        wait: bool = True,
        transpose: bool = False,
        weight: int = 0,
        values: Tensor | None = None,
        x: Tensor | None = None,
        y: Tensor | None = None,
        add: Tensor | None = None,
        out: Tensor | None,
        out2: Tensor | None = None,
        scale_x: float | Tensor = 1.0,
        scale_y: float | Tensor = 1.0,
        scale_add: float | Tensor = 1.0,
        products: Tensor | None = None,
        scale_products: float | Tensor = 1.0,
    ) -> None:
        self._most_sources = max(self._most_sources, self._sources[transpose])
        self._steps.append(
            (
                op,
                wait,
                *self._sides[transpose],
                weight,
                *(self._address(tensor) for tensor in (values, x, y, add, out, out2)),
                *(self._scale(scale) for scale in (scale_x, scale_y, scale_add)),
                self._address(products),
                self._scale(scale_products),
            )
        )

    def _address(self, tensor: Tensor | None) -> int:
        if tensor is None:
            return 0
        assert tensor.is_contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()

    def _scale(self, scale: float | Tensor) -> int:
        if isinstance(scale, Tensor):
            return self._address(self._layout.coefficient(scale))
        if scale not in self._scales:
            self._scales[scale] = self._address(self._layout.coefficient(scale))
        return self._scales[scale]

    def _blocks(self, rowptr: Tensor) -> tuple[int, int]:
        """The number of blocks of rows, and the address of their bounds."""
        pointers = rowptr.numpy()
        blocks = number_of_blocks(pointers, self._layout.width, self._threads, _SMALLEST_BLOCK)
        bounds = np.array(balanced_bounds(pointers, blocks), dtype=np.int32)
        self._kept.append(bounds)
        return blocks, bounds.ctypes.data
