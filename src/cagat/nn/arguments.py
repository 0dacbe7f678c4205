"""What the layer's arguments must be."""

import math
import numbers

import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels import CSRGraph
from cagat.nn.sparse_features import SparseFeatures

NOT_BIPARTITE = "CaGAT diffuses attention from nodes to the same nodes, so bipartite graphs are not possible"


def as_features(x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
    """The node features, prepared if they are sparse."""
    if isinstance(x, SparseFeatures):
        return x
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be one tensor of node features, got {type(x).__name__}: {NOT_BIPARTITE}")
    if x.dim() != 2:
        raise ValueError(f"x must have shape (number of nodes, number of features), got {tuple(x.shape)}")
    return SparseFeatures.from_tensor(x) if is_torch_sparse_tensor(x) else x


def chosen_nodes(nodes: int | list[int] | Tensor, graph: CSRGraph) -> Tensor:
    """The numbers of the nodes that are meant by a number, numbers or a mask."""
    chosen = torch.as_tensor(nodes, device=graph.device)
    if chosen.numel() == 0:
        return torch.empty(0, dtype=torch.long, device=graph.device)
    if chosen.dtype == torch.bool:
        if chosen.shape != (graph.num_nodes,):
            raise ValueError(f"the mask of nodes must have shape ({graph.num_nodes},), got {tuple(chosen.shape)}")
        return chosen.nonzero().squeeze(1)
    if chosen.is_floating_point():
        raise TypeError(f"nodes must be integers or a mask, got {chosen.dtype}")
    chosen = chosen.long().reshape(-1)
    wrong = chosen[(chosen < 0) | (chosen >= graph.num_nodes)]
    if wrong.numel():
        raise IndexError(f"there is no node {int(wrong[0])}: nodes are numbered from 0 to {graph.num_nodes - 1}")
    return chosen


def require_count(name: str, value: int) -> None:
    """Raise unless the value is an integer not below 0."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} must be an integer not below 0, got {value!r}")


def require_within(name: str, value: float, low: float, high: float) -> None:
    """Raise unless the value is a finite number of the range, its ends included."""
    if not low <= value <= high or math.isinf(value):
        bounds = f"in [{low}, {high}]" if math.isfinite(high) else f"finite and not below {low}"
        raise ValueError(f"{name} must be {bounds}, got {value!r}")


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
