"""Edges: from a graph that a user passes, or from nearest neighbours."""

import warnings
from typing import Any, NamedTuple

import networkx
import numpy as np
import torch
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from cagat.data import from_networkx, from_scipy
from cagat.data.validation import as_int64, check_range
from cagat.errors import DatasetError


class Edges(NamedTuple):
    """Sources and targets, shape (2, edges), and for each edge its weight, unless all are 1."""

    edge_index: Tensor
    weight: Tensor | None = None

    def joined_to(self, neighbours: Tensor, num_nodes: int) -> "Edges":
        """The edges after new nodes were joined to known ones in such a way that nothing known changes.

        Every new node gets an edge of weight 0 from each of its neighbours. Such an edge is in G, so the new node
        attends to its neighbours, but not in Abar, along which attention is diffused (Eq. 15). So no other node attends
        to the new one, and its output depends on itself and the known nodes alone. (With weight 1, all nodes near its
        neighbours would attend to it by `Abar S Abar^T`.)
        `neighbours` are those known nodes, shape (new nodes, neighbours).
        """
        new = num_nodes + torch.arange(neighbours.size(0)).repeat_interleave(neighbours.size(1))
        weight = torch.ones(self.edge_index.size(1)) if self.weight is None else self.weight
        return Edges(
            torch.cat([self.edge_index, torch.stack([neighbours.reshape(-1), new])], dim=1),
            torch.cat([weight, torch.zeros(new.numel())]),
        )


def edges_of(graph: Any, num_nodes: int) -> Edges:
    """The edges of a graph on so many nodes, of any form that :meth:`CaGATClassifier.fit` takes."""
    if sparse.issparse(graph):
        if graph.shape != (num_nodes, num_nodes):
            raise _other_size(f"an adjacency matrix of shape {graph.shape}", num_nodes)
        data = from_scipy(graph, sparse=True)
    elif isinstance(graph, networkx.Graph):
        if len(graph) != num_nodes:
            raise _other_size(f"a networkx graph with {len(graph)} nodes", num_nodes)
        if set(graph) == set(range(num_nodes)) and list(graph) != list(range(num_nodes)):
            # Nodes that are called 0 to n - 1 mean the rows of X, in whatever order they were added.
            ordered = type(graph)()
            ordered.add_nodes_from(range(num_nodes))
            ordered.add_edges_from(graph.edges(data=True))
            graph = ordered
        data = from_networkx(graph, features=None, label=None, sparse=True)
    else:
        return Edges(_edge_index(graph, num_nodes))
    return Edges(data.edge_index, getattr(data, "edge_weight", None))


def warn_of_one_way_edges(graph: Any, edges: Edges, num_nodes: int) -> None:
    """Warn if a given edge_index has most of its edges one way only: perhaps each edge was meant to count both ways.

    A matrix counts both ways, and a networkx graph says itself what it is.
    """
    if graph is None or sparse.issparse(graph) or isinstance(graph, networkx.Graph):
        return
    source, target = edges.edge_index.numpy()
    source, target = source[source != target], target[source != target]
    one_way = ~np.isin(source * num_nodes + target, target * num_nodes + source)
    if 2 * int(one_way.sum()) <= len(source):
        return
    alone = num_nodes - len(np.unique(target))
    both = num_nodes - len(np.unique(np.concatenate([source, target])))
    warnings.warn(
        f"{int(one_way.sum())} of the {len(source)} edges of graph stand one way only. Nodes attend to the sources of "
        f"their edges, so {alone} of {num_nodes} nodes attend to no other. Undirected, the graph has "
        f"{len(source) + int(one_way.sum())} edges, and {both} nodes attend to no other: pass "
        "torch_geometric.utils.to_undirected(edge_index). If the direction is meant, pass a networkx.DiGraph.",
        stacklevel=3,
    )


def _edge_index(graph: Any, num_nodes: int) -> Tensor:
    try:
        index = as_int64("it", graph.detach().cpu() if isinstance(graph, Tensor) else graph, (2, None))
    except DatasetError as error:
        raise DatasetError(
            "graph must be a scipy sparse matrix, an edge_index of shape (2, edges) or a networkx graph, got "
            f"{type(graph).__name__}: {error} A dense adjacency matrix becomes a sparse one by "
            "scipy.sparse.csr_array(graph), a list of pairs an edge_index by numpy.transpose, and floats integers by "
            ".astype(int), or .long() in torch."
        ) from error
    rows = f"X has {num_nodes} rows, so nodes are 0 to {num_nodes - 1}. Renumber the edges, or give every node a row"
    check_range("graph: node", index, 0, num_nodes - 1, rows)
    return torch.from_numpy(np.unique(index, axis=1))


def _other_size(what: str, num_nodes: int) -> DatasetError:
    return DatasetError(f"graph is {what}, but X has {num_nodes} rows. Each row of X must be one node of the graph.")


def nearest_neighbours(features: Any, count: int) -> NearestNeighbors:
    """A search for the neighbours of points among these, in Euclidean distance."""
    count = min(int(count), features.shape[0] - 1)
    # Distances in single precision depend on how many are computed at a time.
    return NearestNeighbors(n_neighbors=count).fit(features.astype(np.float64))


def neighbour_edges(search: NearestNeighbors) -> Edges:
    """Each point of a search joined to its neighbours, both ways, without weights."""
    near = sparse.coo_array(search.kneighbors_graph())
    both = (near + near.T).tocoo()
    return Edges(torch.from_numpy(np.stack([both.row, both.col]).astype(np.int64)))
