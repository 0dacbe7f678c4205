"""Memory for large tensors in files of its own, so that what is not worked on can lie on disk."""

import math
import mmap
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cagat.files import disk_errors, take_room

# Smaller tensors stay in memory.
_SMALLEST = 2**18
_SEGMENT_BYTES = 2**28
_PAGE = mmap.PAGESIZE
# What these operators return was never written to.
_UNWRITTEN = {torch.ops.aten.empty.memory_format, torch.ops.aten.new_empty.default, torch.ops.aten.empty_like.default}


class _Segment:
    """A file that is mapped into memory, and which of it is free."""

    def __init__(self, directory: Path, size: int) -> None:
        with disk_errors(directory / "scratch"), tempfile.TemporaryFile(dir=directory) as file:
            take_room(file.fileno(), size)
            self.mapping = mmap.mmap(file.fileno(), size)
        self.array = np.frombuffer(self.mapping, dtype=np.uint8)
        self.start = self.array.ctypes.data
        self.free = [(0, size)]

    def take(self, size: int) -> int | None:
        """The first place where so many bytes are free."""
        for number, (start, length) in enumerate(self.free):
            if length >= size:
                self.free[number : number + 1] = [(start + size, length - size)] if length > size else []
                return start
        return None

    def give_back(self, start: int, size: int) -> None:
        """Make a place free, as one with those beside it."""
        joined: list[tuple[int, int]] = []
        for offset, length in sorted([*self.free, (start, size)]):
            if joined and sum(joined[-1]) == offset:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((offset, length))
        self.free = joined


class _Lease:
    """A place in a segment, which is free again when the last tensor on it is gone."""

    def __init__(self, memory: "DiskMemory", segment: _Segment, start: int, size: int) -> None:
        self._memory, self._segment, self._range = memory, segment, (start, size)
        self.__array_interface__ = segment.array[start : start + size].__array_interface__

    def __del__(self) -> None:
        self._memory.end(self._segment, *self._range)


class DiskMemory:
    """Memory whose content is in files without a name, which are gone with the process.

    The operating system writes to the files what it has no room for, and nothing as long as it has.

    Args:
        directory: Where the files are.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._segments: list[_Segment] = []
        # Reentrant, since the garbage collector may end a lease while this thread holds the lock.
        self._lock = threading.RLock()

    def empty(self, shape: tuple[int, ...] | torch.Size, dtype: torch.dtype) -> Tensor:
        """An uninitialised tensor."""
        needed = math.prod(shape) * dtype.itemsize
        block = np.asarray(self._lease(-(-max(needed, 1) // _PAGE) * _PAGE))
        return torch.from_numpy(block)[:needed].view(dtype).view(shape)

    def copy(self, x: Tensor) -> Tensor:
        """A copy of a tensor, or the tensor itself if it is small."""
        return x if x.nbytes < _SMALLEST else self.empty(x.shape, x.dtype).copy_(x)

    def holds(self, x: Tensor) -> bool:
        """Whether a tensor lies here."""
        address = x.untyped_storage().data_ptr()
        return any(segment.start <= address < segment.start + len(segment.array) for segment in self._segments)

    def release(self) -> None:
        """Take nothing of the process's memory until it is needed again; the content stays."""
        with self._lock:
            for segment in self._segments:
                segment.mapping.madvise(mmap.MADV_DONTNEED)

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(len(segment.array) for segment in self._segments)

    def end(self, segment: _Segment, start: int, size: int) -> None:
        """End a lease."""
        with self._lock:
            segment.give_back(start, size)

    def _lease(self, size: int) -> _Lease:
        with self._lock:
            for segment in self._segments:
                start = segment.take(size)
                if start is not None:
                    return _Lease(self, segment, start, size)
            self._segments.append(_Segment(self._directory, max(size, _SEGMENT_BYTES)))
            return self._lease(size)


class LargeTensorsOnDisk(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, large results of torch's operators in this thread lie in the memory that it is given."""

    def __init__(self, memory: DiskMemory) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memory = memory

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            return self._moved(func, result, (args, kwargs))
        if isinstance(result, (tuple, list)):
            moved = [self._moved(func, one, (args, kwargs)) if isinstance(one, Tensor) else one for one in result]
            return type(result)(moved)
        return result

    def _moved(self, func: Callable[..., Any], x: Tensor, inputs: Any) -> Tensor:
        is_large = x.layout is torch.strided and x.device.type == "cpu" and x.nbytes >= _SMALLEST
        if not is_large or not x.is_contiguous() or self._memory.holds(x):
            return x
        storage = x.untyped_storage().data_ptr()
        given = (one for one in tree_leaves(inputs) if isinstance(one, Tensor) and one.layout is torch.strided)
        # What was made of an array stays there; a view of an input must remain one.
        is_view = any(one.untyped_storage().data_ptr() == storage for one in given)
        if is_view and func is not torch.ops.aten.lift_fresh.default:
            return x
        moved = self._memory.empty(x.shape, x.dtype)
        return moved if func in _UNWRITTEN else moved.copy_(x)
