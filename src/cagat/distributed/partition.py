"""Cutting a graph into parts of equal size with few edges between them."""

import torch
from torch import Tensor

from cagat.errors import CagatError, ConfigError


def metis_parts(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """The part of each node, by `METIS <https://doi.org/10.1137/S1064827595287997>`_; none of them is empty.

    It is a pure function of the graph. Edges count in both directions.

    Args:
        edge_index: The edges, of shape ``(2, |E|)``.
        num_nodes: The number of nodes.
        parts: The number of parts.

    Raises:
        ConfigError: There are more parts than nodes.
        CagatError: pymetis is not installed.
    """
    if not 1 <= parts <= num_nodes:
        raise ConfigError(f"A graph of {num_nodes} nodes cannot be cut into {parts} parts. Ask for 1 to {num_nodes}.")
    if parts == 1:
        return torch.zeros(num_nodes, dtype=torch.long)
    try:
        import pymetis
    except ImportError as error:
        raise CagatError("Cutting graphs needs the package pymetis. Install it: pip install 'cagat[scale]'") from error
    index = pymetis.zero_copy_dtype()
    arrays = [tensor.numpy().astype(index) for tensor in _neighbours(edge_index.cpu(), num_nodes)]
    adjacency = pymetis.CSRAdjacency(*arrays)
    found = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=0))
    return _without_empty_parts(torch.tensor(found.vertex_part, dtype=torch.long), parts)


def _neighbours(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The neighbours of each node in either direction, itself excepted, in compressed rows."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    key = torch.unique(torch.cat([source * num_nodes + target, target * num_nodes + source]))
    row = torch.div(key, num_nodes, rounding_mode="floor")
    counts = torch.bincount(row, minlength=num_nodes)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), key - row * num_nodes


def _without_empty_parts(part: Tensor, parts: int) -> Tensor:
    """METIS leaves parts of small graphs empty; such a part takes a node of the largest."""
    sizes = torch.bincount(part, minlength=parts)
    for empty in (sizes == 0).nonzero().flatten().tolist():
        largest = int(sizes.argmax())
        part[(part == largest).nonzero()[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] = 1
    return part
