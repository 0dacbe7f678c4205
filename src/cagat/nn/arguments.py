"""What a layer must be given when it is called."""

import numbers

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels import CSRGraph
from cagat.kernels.validation import require_dense, require_tensor
from cagat.nn.settings import NOT_BIPARTITE
from cagat.nn.sparse_features import SparseFeatures


def as_features(x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
    """The node features, prepared if they are sparse."""
    if isinstance(x, SparseFeatures):
        return x
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be one tensor of node features, got {type(x).__name__}: {NOT_BIPARTITE}")
    require_tensor("x", x)
    if x.dim() != 2:
        raise ValueError(f"x must have shape (number of nodes, number of features), got {tuple(x.shape)}")
    return SparseFeatures.from_tensor(x) if is_torch_sparse_tensor(x) else x


def require_fitting(name: str, features: Tensor | SparseFeatures, weight: Tensor, size_name: str) -> None:
    """Raise unless features have the dtype and the width of the weights that they are multiplied with.

    Args:
        name: What the features are called.
        features: One row a node or edge.
        weight: Shape ``(channels, features)``, or a parameter that learns its size from the first features.
        size_name: The layer's argument that says how wide they are.
    """
    dtype = features.values.dtype if isinstance(features, SparseFeatures) else features.dtype
    # Autocast converts what a product takes, but no double precision.
    converted = torch.is_autocast_enabled(weight.device.type) and dtype.is_floating_point and dtype != torch.float64
    if dtype != weight.dtype and not converted:
        raise TypeError(
            f"{name} is of type {dtype}, but the layer of type {weight.dtype}; convert with {name}.to({weight.dtype})"
        )
    width = features.shape[1]
    if not isinstance(weight, UninitializedParameter) and width != weight.size(1):
        raise ValueError(
            f"{name} has {width} features a row, but the layer was made for {weight.size(1)}; give as many, or make it "
            f"with {size_name}={width}"
        )


def require_edges(edge_index: object) -> None:
    """Raise unless edges are a tensor or a prepared graph."""
    if not isinstance(edge_index, (Tensor, CSRGraph)):
        raise TypeError(
            "edge_index must be a tensor of shape (2, number of edges), a sparse tensor or a CSRGraph, got a "
            f"{type(edge_index).__name__}; convert with torch.as_tensor(edge_index)"
        )
    if isinstance(edge_index, Tensor):
        require_tensor("edge_index", edge_index)


def require_edge_values(edge_attr: object) -> None:
    """Raise unless edge features or weights are a dense tensor of real numbers."""
    require_dense("edge_attr", edge_attr)
    assert isinstance(edge_attr, Tensor)
    if edge_attr.is_complex():
        raise TypeError(f"edge_attr must be real, got {edge_attr.dtype}; pass edge_attr.real or edge_attr.abs()")
    if edge_attr.dim() not in (1, 2):
        raise ValueError(
            f"edge_attr must have shape (number of edges,) or (number of edges, features), got {tuple(edge_attr.shape)}"
        )


def chosen_nodes(nodes: int | list[int] | Tensor, graph: CSRGraph) -> Tensor:
    """The numbers of the nodes that are meant by a number, numbers or a mask."""
    try:
        chosen = torch.as_tensor(nodes, device=graph.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"nodes must be a number, numbers or a mask, got {nodes!r:.80}; pass a list or tensor"
        ) from error
    if chosen.numel() == 0:
        return torch.empty(0, dtype=torch.long, device=graph.device)
    if chosen.dtype == torch.bool:
        if chosen.shape != (graph.num_nodes,):
            raise ValueError(f"the mask of nodes must have shape ({graph.num_nodes},), got {tuple(chosen.shape)}")
        return chosen.nonzero().squeeze(1)
    if chosen.is_floating_point() or chosen.is_complex():
        raise TypeError(f"nodes must be integers or a mask, got {chosen.dtype}; convert with .long() or .bool()")
    chosen = chosen.long().reshape(-1)
    wrong = chosen[(chosen < 0) | (chosen >= graph.num_nodes)]
    if wrong.numel():
        raise IndexError(f"there is no node {int(wrong[0])}: nodes are numbered from 0 to {graph.num_nodes - 1}")
    return chosen


def require_rounds(rounds: int, most: int) -> None:
    """Raise unless the value is the number of some of the layer's rounds."""
    if not isinstance(rounds, numbers.Integral) or isinstance(rounds, bool) or not 0 <= rounds <= most:
        raise ValueError(f"rounds must be an integer in 0..{most}, got {rounds!r:.80}")


def require_square(size: object, num_nodes: int) -> None:
    """Raise unless PyG's ``size`` of a graph says what is known anyway."""
    if size is None:
        return
    if not isinstance(size, (tuple, list)) or tuple(size) != (num_nodes, num_nodes):
        raise ValueError(f"size must be None or ({num_nodes}, {num_nodes}), got {size!r:.80}: {NOT_BIPARTITE}")
