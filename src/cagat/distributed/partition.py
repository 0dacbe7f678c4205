"""Cutting a graph into parts of equal size with few edges between them."""

import importlib.util
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.errors import CagatError, ConfigError

# Graphs of more neighbours than that, two for each edge, are cut by a process of their own.
LARGE = 1_000_000


def metis_parts(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """The part of each node, by `METIS <https://doi.org/10.1137/S1064827595287997>`_; none of them is empty.

    It is a pure function of the graph. Edges count in both directions.
    """
    if not 1 <= parts <= num_nodes:
        raise ConfigError(f"A graph of {num_nodes} nodes cannot be cut into {parts} parts. Ask for 1 to {num_nodes}.")
    if parts == 1:
        return torch.zeros(num_nodes, dtype=torch.long)
    if importlib.util.find_spec("pymetis") is None:
        raise CagatError("Cutting graphs needs the package pymetis. Install it: pip install 'cagat[scale]'")
    starts, neighbours = (tensor.numpy() for tensor in _neighbours(edge_index.cpu(), num_nodes))
    if neighbours.size > LARGE and torch.distributed.is_initialized():
        # METIS lets no other thread of Python run, and a process that says nothing for long is taken for dead.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            part = process.submit(_cut, parts, starts, neighbours).result()
    else:
        part = _cut(parts, starts, neighbours)
    return _without_empty_parts(torch.from_numpy(part), parts)


def _cut(parts: int, starts: NDArray[np.int64], neighbours: NDArray[np.int64]) -> NDArray[np.int64]:
    import pymetis

    index = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(starts.astype(index), neighbours.astype(index))
    found = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=0))
    return np.array(found.vertex_part, dtype=np.int64)


def _neighbours(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The neighbours of each node in either direction, itself excepted, in compressed rows."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    key = torch.unique(torch.cat([source * num_nodes + target, target * num_nodes + source]))
    counts = torch.bincount(key // num_nodes, minlength=num_nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), key % num_nodes


def _without_empty_parts(part: Tensor, parts: int) -> Tensor:
    """METIS leaves parts of small graphs empty; such a part takes a node of the largest."""
    sizes = torch.bincount(part, minlength=parts)
    for empty in (sizes == 0).nonzero().flatten().tolist():
        largest = int(sizes.argmax())
        part[(part == largest).nonzero()[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] = 1
    return part
