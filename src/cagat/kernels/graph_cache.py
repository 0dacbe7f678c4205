"""Prepared graphs, remembered as long as the tensors that they were made from live and stay unchanged."""

import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels.csr_graph import CSRGraph
from cagat.kernels.validation import check_adjacency, require_dense, require_tensor


class _Snapshot(NamedTuple):
    """A tensor as it was when something was made from it."""

    reference: "weakref.ref[Tensor]"
    fingerprint: tuple[Any, ...]
    copies: tuple[Tensor, ...]

    @classmethod
    def of(cls, tensor: Tensor, on_death: Callable[[Any], object]) -> "_Snapshot":
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
    bypasses that counter, here as in torch's own autograd.

    Args:
        capacity: How many results are kept at most; the least recently used leaves first. The default is enough for the
            batches of a loader that go round; what was made leaves with its tensor anyway.
    """

    def __init__(self, capacity: int = 64) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._made: dict[tuple[Any, ...], tuple[tuple[_Snapshot, ...], Any]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(self, tensors: tuple[Tensor, ...], options: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What ``make()`` gave for the same tensors and options, or gives now."""
        made, key = self._made, (*map(id, tensors), *options)
        with self._lock:
            known = made.get(key)
        if known is None or not all(map(_Snapshot.is_still, known[0], tensors)):
            # When a tensor dies, its results leave. The callback may come at any time, also while this thread holds the
            # lock, so it does not take it: popping from a dict is atomic. It must not keep this cache alive.
            known = (tuple(_Snapshot.of(tensor, lambda _: made.pop(key, None)) for tensor in tensors), make())
        with self._lock:
            made.pop(key, None)
            made[key] = known  # At the end, as the latest used.
            while len(made) > self._capacity:
                del made[next(iter(made))]
        return known[1]


_graphs = TensorCache()


def prepare_graph(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    *,
    values_are_weights: bool = True,
    add_self_loops: bool = True,
    normalization: str = "row",
    dtype: torch.dtype | None = None,
) -> CSRGraph:
    """As :meth:`CSRGraph.from_edge_index`, remembered: the second call with the same tensors costs nothing.

    It also takes a torch sparse matrix (COO, CSR or CSC), whose rows are the targets as in PyG's ``adj_t``. Its values
    are the weights, if ``values_are_weights`` and no ``edge_weight`` is given.
    """
    options = (edge_index, num_nodes, edge_weight, values_are_weights, add_self_loops, normalization, dtype)
    if torch.compiler.is_compiling():  # Not as a decorator, which imports torch's compiler although nothing uses it.
        graph: CSRGraph = torch.compiler.disable(_prepare_graph)(*options)  # type: ignore[no-untyped-call]
        return graph
    return _prepare_graph(*options)


def _prepare_graph(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None,
    values_are_weights: bool,
    add_self_loops: bool,
    normalization: str,
    dtype: torch.dtype | None,
) -> CSRGraph:
    # Before anything is remembered, since only tensors can be.
    require_tensor("edge_index", edge_index)
    if edge_weight is not None:
        require_dense("edge_weight", edge_weight)
    if isinstance(edge_index, EdgeIndex):
        edge_index = edge_index.as_tensor()

    def make() -> CSRGraph:
        edges, values = _edges_of(edge_index, num_nodes)
        weight = values if edge_weight is None and values_are_weights else edge_weight
        return CSRGraph.from_edge_index(
            edges, num_nodes, weight, add_self_loops=add_self_loops, normalization=normalization, dtype=dtype
        )

    tensors = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
    graph: CSRGraph = _graphs.get(tensors, (num_nodes, add_self_loops, values_are_weights), make)
    return graph


def _edges_of(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    if not is_torch_sparse_tensor(edge_index):
        return edge_index, None
    check_adjacency(edge_index, num_nodes)
    coo = edge_index.detach().to_sparse(layout=torch.sparse_coo).coalesce()
    target, source = coo.indices()
    return torch.stack([source, target]), coo.values()
