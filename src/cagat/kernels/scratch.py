"""Memory for large intermediate results, used again and again."""

import math
import threading
from typing import Any

import numpy as np
import torch
from torch import Tensor

_NUMPY_TYPES: dict[torch.dtype, type[np.floating[Any]]] = {torch.float32: np.float32, torch.float64: np.float64}

# Below this size the C library keeps freed memory itself. Above it, every step of training would be given fresh pages
# by the operating system, one fault and 4 kB of zeros at a time: on PubMed 54 000 of them.
_SMALLEST = 2**20
# Freed memory that is kept at the most. A block that alone is larger goes back at once: its pages are huge ones, which
# NumPy asks for, and cost little.
_KEPT_BYTES = 2**28
# Blocks begin where a line of the cache does. NumPy's large ones begin 16 bytes later: a row of four lines would lie in
# five, and the fifth, for which nobody asked in time, would hold up each row.
_LINE = 64


class _Lease:
    """A block of memory that goes back to the shelf when the last tensor on it is gone."""

    def __init__(self, shelf: "_Shelf", block: "np.ndarray[Any, Any]", size: int) -> None:
        self._shelf = shelf
        self._block = block
        start = -block.ctypes.data % _LINE
        self.__array_interface__ = block[start : start + size].__array_interface__

    def __del__(self) -> None:
        self._shelf.put_back(self._block)


class _Shelf:
    """Free blocks of memory."""

    def __init__(self) -> None:
        # Reentrant, since the garbage collector may end a lease while this thread holds the lock.
        self._lock = threading.RLock()
        self._blocks: list[np.ndarray[Any, Any]] = []

    def lease(self, size: int) -> _Lease:
        """A block of at least so many bytes, of which not more than an eighth is wasted."""
        with self._lock:
            fitting = [block for block in self._blocks if size <= block.nbytes - _LINE <= size + size // 8]
            if fitting:
                block = min(fitting, key=len)
                self._blocks = [other for other in self._blocks if other is not block]
                return _Lease(self, block, size)
        return _Lease(self, np.empty(size + _LINE, dtype=np.uint8), size)

    def put_back(self, block: "np.ndarray[Any, Any]") -> None:
        """Keep a block, and let those go that were not used for the longest time if it becomes too much."""
        with self._lock:
            self._blocks.append(block)
            while sum(kept.nbytes for kept in self._blocks) > _KEPT_BYTES:
                self._blocks.pop(0)


_shelf = _Shelf()


def scratch(*size: int, dtype: torch.dtype) -> Tensor:
    """An uninitialised tensor; its memory is kept for the next one when it is no longer used."""
    needed = math.prod(size) * dtype.itemsize
    if needed < _SMALLEST:
        return torch.empty(size, dtype=dtype)
    array = np.asarray(_shelf.lease(needed)).view(_NUMPY_TYPES[dtype])
    return torch.from_numpy(array).view(size)
