"""Features of edges, and of the self-loops that nobody gave any."""

import torch
from torch import Tensor
from torch_geometric.utils import add_self_loops

from cagat.kernels import CSRGraph


def edge_features_with_loops(graph: CSRGraph, edge_attr: Tensor, fill_value: float | Tensor | str) -> Tensor:
    """Features for all columns of ``graph.edge_index``, the added self-loops among them.

    As in PyG's GATConv, where self-loops are added, all of them are filled, those that were given too.

    Args:
        graph: The graph.
        edge_attr: Features of the edges that were given.
        fill_value: A number, a tensor, or how a node's incoming features are reduced (``"mean"``, ``"max"``, ...).

    Shapes:
        - **edge_attr:** :math:`(|E|, D)` or :math:`(|E|)`
        - **output:** :math:`(|E'|, D)`
    """
    if edge_attr.dim() == 1:
        edge_attr = edge_attr[:, None]
    if edge_attr.size(0) != graph.num_given:
        raise ValueError(f"edge_attr has {edge_attr.size(0)} rows for {graph.num_given} edges")
    if not graph.has_added_loops:
        return edge_attr
    _require_fill_of(fill_value, graph.num_nodes, edge_attr.size(1))
    given, added = graph.edge_index[:, : graph.num_given], graph.edge_index[1, graph.num_given :]
    is_loop = given[0] == given[1]
    _, filled = add_self_loops(
        given[:, ~is_loop], edge_attr[~is_loop], fill_value=fill_value, num_nodes=graph.num_nodes
    )
    loop_attr = filled[filled.size(0) - graph.num_nodes :]
    return torch.cat([torch.where(is_loop[:, None], loop_attr[given[1]], edge_attr), loop_attr[added]])


def _require_fill_of(fill_value: float | Tensor | str, num_nodes: int, width: int) -> None:
    """Raise if a tensor cannot fill the features of self-loops."""
    if not isinstance(fill_value, Tensor):
        return
    ends = zip(reversed(fill_value.shape), (width, num_nodes), strict=False)
    if fill_value.dim() > 2 or any(size not in (1, wanted) for size, wanted in ends):
        raise ValueError(
            f"fill_value has shape {tuple(fill_value.shape)}, but edges have {width} features; give it shape ({width},)"
        )
