"""What was made from a tensor, remembered as long as the tensor lives and stays unchanged."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
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
    def of(cls, tensor: Tensor) -> "_Seen":
        # Torch counts the changes of an ordinary tensor. It does not for inference tensors, nor, through its parts,
        # for sparse ones: of those a copy is kept and compared.
        countless = is_torch_sparse_tensor(tensor) or tensor.is_inference()
        copies = tuple(part.clone() for part in _parts(tensor)) if countless else ()
        return cls(weakref.ref(tensor), _fingerprint(tensor), copies)

    def is_still(self, tensor: Tensor) -> bool:
        if self.reference() is not tensor or self.fingerprint != _fingerprint(tensor):
            return False
        return not self.copies or all(map(torch.equal, self.copies, _parts(tensor)))


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout == torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout == torch.sparse_csc:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def _fingerprint(tensor: Tensor) -> tuple[Any, ...]:
    if is_torch_sparse_tensor(tensor) or tensor.is_inference():
        return (tuple(tensor.shape),)
    return tensor._version, tensor.data_ptr(), tuple(tensor.shape)


class TensorCache:
    """Remembers what was made from which tensors, as long as these live and stay unchanged.

    A change in place is noticed by torch's version counter. Writing through ``tensor.numpy()`` or ``tensor.data``
    passes that counter by, here as in torch's own autograd.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[Any, ...], tuple[tuple[_Seen, ...], Any]] = OrderedDict()

    def get(self, tensors: tuple[Tensor, ...], options: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make()`` gave for the same tensors and options, or gives now."""
        key = (*map(id, tensors), *options)
        with self._lock:
            known = self._made.get(key)
            if known is not None and all(seen.is_still(tensor) for seen, tensor in zip(known[0], tensors, strict=True)):
                self._made.move_to_end(key)
                return known[1]
        made = make()
        seen = tuple(map(_Seen.of, tensors))
        with self._lock:
            self._made[key] = (seen, made)
            self._made.move_to_end(key)
            dead = [
                other for other, (parts, _) in self._made.items() if any(part.reference() is None for part in parts)
            ]
            for other in dead:
                del self._made[other]
            while len(self._made) > self._capacity:
                self._made.popitem(last=False)
        return made
