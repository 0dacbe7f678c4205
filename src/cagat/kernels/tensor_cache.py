"""What was made from a tensor, remembered as long as the tensor lives and stays unchanged."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor

# Enough for the batches of a loader that go round; what was made leaves with its tensor anyway.
_CAPACITY = 64


class _Seen(NamedTuple):
    """A tensor as it was when something was made from it."""

    reference: "weakref.ref[Tensor]"
    fingerprint: tuple[Any, ...]
    copies: tuple[Tensor, ...]

    @classmethod
    def of(cls, tensor: Tensor, on_death: Callable[[Any], None]) -> "_Seen":
        copies = () if _counts_changes(tensor) else tuple(part.clone() for part in _parts(tensor))
        return cls(weakref.ref(tensor, on_death), _fingerprint(tensor), copies)

    def is_still(self, tensor: Tensor) -> bool:
        if self.reference() is not tensor or self.fingerprint != _fingerprint(tensor):
            return False
        return not self.copies or all(map(torch.equal, self.copies, _parts(tensor)))


def _counts_changes(tensor: Tensor) -> bool:
    """Torch counts the changes of ordinary tensors, but not of inference tensors, nor of the parts of sparse ones."""
    return not (is_torch_sparse_tensor(tensor) or tensor.is_inference())


def _fingerprint(tensor: Tensor) -> tuple[Any, ...]:
    if _counts_changes(tensor):
        return tensor._version, tensor.data_ptr(), tuple(tensor.shape)
    return (tuple(tensor.shape),)


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout == torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout == torch.sparse_csc:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


class TensorCache:
    """Remembers what was made from which tensors.

    A change in place is noticed by torch's version counter. Writing through ``tensor.numpy()`` or ``tensor.data``
    passes that counter by, here as in torch's own autograd.

    Args:
        capacity: How many results are kept at the most; the one that was not used for the longest time leaves first.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._made: dict[tuple[Any, ...], tuple[tuple[_Seen, ...], Any]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(self, tensors: tuple[Tensor, ...], options: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make()`` gave for the same tensors and options, or gives now."""
        key = (*map(id, tensors), *options)
        with self._lock:
            known = self._made.get(key)
        if known is None or not all(map(_Seen.is_still, known[0], tensors)):
            # When a tensor dies, its results leave. The callback may come at any time, also while this thread holds the
            # lock, so it does not take it: popping from a dict is atomic.
            forget = partial(_forget, self._made, key)
            known = (tuple(_Seen.of(tensor, forget) for tensor in tensors), make())
        with self._lock:
            self._made.pop(key, None)
            self._made[key] = known  # At the end, as the latest used.
            while len(self._made) > self._capacity:
                del self._made[next(iter(self._made))]
        return known[1]


def _forget(made: dict[tuple[Any, ...], Any], key: tuple[Any, ...], _: Any) -> None:
    made.pop(key, None)
