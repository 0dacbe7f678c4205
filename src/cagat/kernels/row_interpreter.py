"""What runs row programs."""

import inspect
import zlib
from functools import cache
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba.np.numpy_support import carray

from cagat.kernels import compiled as compiled_module
from cagat.kernels import lanes as lanes_module
from cagat.kernels import row_steps, softmax_steps
from cagat.kernels import row_table as table
from cagat.kernels.compiled import CFunction, compiled_for_c
from cagat.kernels.lanes import fetch_add, give_way, index, pause, read

# About as long as a block of rows takes.
_SPINS = 2_000


@cache
def interpreter(dtype: type[np.floating[Any]], lanes: int, heads: int, ahead: int) -> CFunction:
    """What runs programs on rows in parts of ``lanes`` lanes, a multiple of ``heads``, both powers of two.

    Rows are asked for ``ahead`` entries before they are needed.
    """
    D, L, H, A = dtype, lanes, heads, ahead
    # In the steps with two sums both must fit into the registers, beside the row that they are made of.
    L2 = max(H, min(L, _bytes_of_two_sums() // 2 // np.dtype(dtype).itemsize))
    C = L // H
    # numba keeps compiled code until this file changes; what it calls is in others, whose text it is told here.
    sources = _fingerprint()

    def run(address: Any) -> None:
        """Take part in all steps of a table, whose first line says what they have in common."""
        head = carray(address, table.COLUMNS, np.int64)
        # The counters, two a step, say how many blocks are taken and how many are done.
        counters, width, last = head[table.COUNTERS], head[table.WIDTH], head[table.LAST]
        steps = carray(address, (head[table.LINES], table.COLUMNS), np.int64)[1:]
        first_unfinished = sources - sources
        for s in range(len(steps)):
            step = steps[s]
            blocks, bounds = step[table.BLOCKS], step[table.BOUNDS]
            while True:
                block = fetch_add(counters, 2 * s, 1)
                if block >= blocks:
                    break
                start, stop = index(bounds, block), index(bounds, block + 1)
                if step[table.OP] == table.AGGREGATE:
                    row_steps.aggregate(step, start, stop, width, last, D, L, H, A)
                elif step[table.OP] == table.AGGREGATE_TWICE:
                    row_steps.aggregate_twice(step, start, stop, width, last, D, L2, H, A)
                elif step[table.OP] == table.AGGREGATE_INNER:
                    row_steps.aggregate_inner(step, start, stop, width, last, D, L2, H, A)
                elif step[table.OP] == table.AGGREGATE_BOTH:
                    row_steps.aggregate_both(step, start, stop, width, last, D, L, H, A)
                elif step[table.OP] == table.ADD_VALUES:
                    row_steps.add_values(step, start, stop, D, H)
                elif step[table.OP] == table.INNER:
                    row_steps.inner(step, start, stop, width, last, D, L, H, A)
                elif step[table.OP] == table.COMBINE:
                    row_steps.combine(step, start, stop, width, D, L, H)
                elif step[table.OP] == table.TO_ROWS:
                    row_steps.to_rows(step, start, stop, D, L, C)
                elif step[table.OP] == table.FROM_ROWS:
                    row_steps.from_rows(step, start, stop, D, L, H)
                elif step[table.OP] == table.SOFTMAX:
                    softmax_steps.softmax(step, start, stop, last, D, H, A)
                elif step[table.OP] == table.SOFTMAX_BACKWARD:
                    softmax_steps.softmax_backward(step, start, stop, last, D, H, A)
                elif step[table.OP] == table.SUM:
                    softmax_steps.sums(step, start, stop, last, D, H, A)
                elif step[table.OP] == table.PICK:
                    row_steps.pick(step, start, stop, D, H)
                elif step[table.OP] == table.PLACE:
                    row_steps.place(step, start, stop, D, H)
                elif step[table.OP] == table.LOGITS:
                    softmax_steps.logits(step, start, stop, width, D, L, H)
                else:
                    softmax_steps.add_logits(step, start, stop, width, D, L, H)
                fetch_add(counters, 2 * s + 1, 1)
            if step[table.WAIT] != 0:
                # Only blocks that somebody has taken are waited for: nobody has to come and help.
                spins = 0
                while first_unfinished <= s:
                    if read(counters, 2 * first_unfinished + 1) == steps[first_unfinished, table.BLOCKS]:
                        first_unfinished += 1
                    spins += 1
                    pause()
                    if spins > _SPINS:  # Whoever holds a block perhaps waits for this very core.
                        give_way()

    return compiled_for_c(run)


def _bytes_of_two_sums() -> int:
    """Half of the registers: there are 32 with AVX-512, of up to 64 bytes, else sixteen, of up to 32.

    On PubMed, with AVX-512, the layer's step takes 99 ms with the larger number and 107 with the smaller one.
    """
    return 512 if get_host_cpu_features().get("avx512vl", False) else 256


@cache
def _fingerprint() -> int:
    modules = (compiled_module, lanes_module, row_steps, softmax_steps, table)
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())
