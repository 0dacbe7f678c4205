"""Cutting a graph whose rows are read block after block: with memory for a few integers per node, none for edges."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.errors import ConfigError
from cagat.kernels.compiled import compiled
from cagat.parts.whole_graph import MatrixRows

SLACK = 1.03
"""How much larger than the mean a part may become."""
PASSES = 10
"""How often every node is placed: after the first pass, all of its neighbours are known."""
_BLOCK_ENTRIES = 2**22


@compiled
def _place(
    ptr: Any, col: Any, ptr_t: Any, col_t: Any, first: int, part: Any, sizes: Any, capacity: float, counts: Any
) -> None:
    """Put each node of a block where most of its neighbours are, the less so the fuller that is."""
    parts = sizes.shape[0]
    seen = np.empty(parts, dtype=np.int64)
    for i in range(ptr.shape[0] - 1):
        node = first + i
        if part[node] >= 0:
            sizes[part[node]] -= 1
        found = 0
        for direction in range(2):
            begin, end = (ptr[i], ptr[i + 1]) if direction == 0 else (ptr_t[i], ptr_t[i + 1])
            for e in range(begin, end):
                j = col[e] if direction == 0 else col_t[e]
                p = part[j]
                if j != node and p >= 0:
                    if counts[p] == 0:
                        seen[found] = p
                        found += 1
                    counts[p] += 1
        best, best_score = -1, 0.0
        for k in range(found):
            p = seen[k]
            score = counts[p] * (1.0 - sizes[p] / capacity)
            if score > best_score or (score == best_score and best >= 0 and sizes[p] < sizes[best]):
                best, best_score = p, score
            counts[p] = 0
        if best < 0:
            best = 0
            for p in range(1, parts):
                if sizes[p] < sizes[best]:
                    best = p
        part[node] = best
        sizes[best] += 1


def stream_parts(rows: MatrixRows, rows_t: MatrixRows | None, parts: int) -> NDArray[np.int32]:
    """The part of each node, by `linear deterministic greedy <https://doi.org/10.1145/2339530.2339722>`_ placement.

    Nodes come again and again in their order, as in `restreaming <https://doi.org/10.1145/2487575.2487696>`_, and go
    where most of their neighbours are. It is a pure function of the graph.
    """
    nodes = len(rows.ptr) - 1
    if not 1 <= parts <= nodes:
        raise ConfigError(f"A graph of {nodes} nodes cannot be cut into {parts} parts. Ask for 1 to {nodes}.")
    part, sizes = np.full(nodes, -1, dtype=np.int32), np.zeros(parts, dtype=np.int64)
    # Never so full that a node finds no place: with few nodes, one more than the mean.
    capacity = float(max(np.ceil(SLACK * nodes / parts), np.ceil(nodes / parts) + 1))
    counts, none = np.zeros(parts, dtype=np.int64), np.empty(0, dtype=np.int64)
    bounds = rows.blocks(_BLOCK_ENTRIES)
    for _ in range(PASSES):
        before = part.copy()
        for start, stop in pairwise(bounds):
            col = rows.columns(start, stop)
            ptr = rows.ptr[start : stop + 1] - rows.ptr[start]
            ptr_t, col_t = np.zeros_like(ptr), none
            if rows_t is not None:
                ptr_t, col_t = rows_t.ptr[start : stop + 1] - rows_t.ptr[start], rows_t.columns(start, stop)
            _place(ptr, col, ptr_t, col_t, start, part, sizes, capacity, counts)
        if np.array_equal(before, part):
            break
    for empty in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        part[np.flatnonzero(part == largest)[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] = 1
    return part
