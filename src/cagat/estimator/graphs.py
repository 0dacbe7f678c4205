"""From what users pass as a graph to edges."""

from typing import Any

import networkx
import numpy as np
import torch
from scipy import sparse

from cagat.data import from_networkx, from_scipy
from cagat.errors import DatasetError
from cagat.estimator.edges import Edges

_FORMS = "a scipy sparse matrix, an edge_index of shape (2, edges) or a networkx graph"


def edges_of(graph: Any, num_nodes: int) -> Edges:
    """Turn a graph of any accepted form into edges.

    Args:
        graph: A scipy sparse matrix, whose edges count both ways and whose entries are weights; an `edge_index`, as
            tensor or array, whose edges count as given; or a networkx graph, which says itself whether it is directed.
        num_nodes: How many rows the features have.

    Raises:
        DatasetError: The graph has no such form, or another number of nodes.
    """
    if sparse.issparse(graph):
        _require_size(f"an adjacency matrix of shape {graph.shape}", graph.shape == (num_nodes, num_nodes), num_nodes)
        return _edges(from_scipy(graph, sparse=True))
    if isinstance(graph, networkx.Graph):
        size = graph.number_of_nodes()
        _require_size(f"a networkx graph with {size} nodes", size == num_nodes, num_nodes)
        return _from_networkx(graph)
    return _from_edge_index(graph, num_nodes)


def _from_networkx(graph: networkx.Graph) -> Edges:
    if set(graph) == set(range(len(graph))) and list(graph) != list(range(len(graph))):
        # Nodes that are called 0 to n - 1 mean the rows of X, in whatever order they were added.
        ordered = type(graph)()
        ordered.add_nodes_from(range(len(graph)))
        ordered.add_edges_from(graph.edges(data=True))
        graph = ordered
    return _edges(from_networkx(graph, features=None, label=None, sparse=True))


def _edges(data: Any) -> Edges:
    return Edges(data.edge_index, getattr(data, "edge_weight", None))


def _from_edge_index(graph: Any, num_nodes: int) -> Edges:
    try:
        index = graph.detach().cpu().numpy() if isinstance(graph, torch.Tensor) else np.asarray(graph)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DatasetError(f"graph must be {_FORMS}, got {type(graph).__name__} ({error}).") from error
    if index.ndim != 2 or index.shape[0] != 2:
        raise DatasetError(
            f"graph must be {_FORMS}, got {type(graph).__name__} of shape {index.shape}. A dense adjacency matrix "
            "becomes a sparse one by scipy.sparse.csr_array(graph), a list of pairs an edge_index by numpy.transpose."
        )
    if index.size == 0:
        return Edges(torch.empty(2, 0, dtype=torch.long))
    if index.dtype.kind not in "iu":
        raise DatasetError(
            f"edge_index must hold integers, got {index.dtype}. Convert it with .astype(int), or .long() in torch."
        )
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= num_nodes:
        raise DatasetError(
            f"edge_index names node {low if low < 0 else high}, but X has {num_nodes} rows, so nodes are 0 to "
            f"{num_nodes - 1}. Renumber the edges, or give every node a row."
        )
    return Edges(torch.from_numpy(np.unique(index.astype(np.int64), axis=1)))


def _require_size(what: str, fits: bool, num_nodes: int) -> None:
    if not fits:
        raise DatasetError(f"graph is {what}, but X has {num_nodes} rows. Each row of X must be one node of the graph.")
