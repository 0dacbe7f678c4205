"""Another graph than the one that a model was trained on: the same features, and perhaps some of the same nodes."""

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.converters import Names, sparse_tensor
from cagat.data.features import structural_features
from cagat.errors import DatasetError

_logger = logging.getLogger(__name__)


def with_features(graph: Data, names: list[str] | None, count: int) -> Data:
    """The graph with its features in the order in which a model was trained on them.

    Features that have names are found by them: one that no node of the new graph has is 0 everywhere, and one that the
    model does not know is left out, which is told with a count.
    """
    given = list(graph.feature_names)
    if not names or not given:
        if graph.x.shape[1] != count:
            raise DatasetError(
                f"{graph.name}: has {graph.x.shape[1]} features, but the model was trained on {count}. Give the graph "
                "the same features, in the same order."
            )
        return graph
    if given == names:
        return graph
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [name for name in given if name not in numbers]
    # New rows that join known nodes may have nothing but what is new.
    if "described" not in graph:
        require_known_features(graph.name, given, names)
    if unknown:
        what = f"{len(unknown)} of {len(given)} features are ignored, because the model was trained without them"
        _logger.warning("%s: %s: %s.", graph.name, what, _shown(unknown))
    known = np.array([name in numbers for name in given])
    columns = np.array([numbers[name] for name in given if name in numbers], dtype=np.int64)
    graph = graph.clone()
    graph.x = _like(graph.x, _matrix(graph.x) @ _selection(np.flatnonzero(known), columns, (len(given), count)))
    graph.feature_names = Names(names)
    return graph


def require_known_features(name: str, given: list[str], names: list[str] | None) -> None:
    """Refuse a graph that has none of the features of the model: it is of another kind."""
    if names and given and not set(given) & set(names):
        raise DatasetError(
            f"{name}: has none of the features that the model was trained with. It has {_shown(given)}; the "
            f"model knows {_shown(names)}. Name them alike."
        )


def joined_to_known(graph: Data, known: Data, *, structural: bool) -> Data:
    """The graph, together with the one that a model was trained on if it holds only what is new.

    A graph with edges to nodes of the known one about which it says nothing else is such a graph: the result is the
    known graph, then the new nodes, with the edges of both. What the new graph says about a node wins. A graph that
    describes all of its nodes is complete and stays as it is.

    Args:
        graph: The new graph, with the features that the model was trained with.
        known: The graph that the model was trained on.
        structural: Whether the features are those of :func:`~cagat.data.features.structural_features`; then a graph
            that holds all nodes of the known one is complete.
    """
    numbers = {name: number for number, name in enumerate(known.node_names)}
    shared = np.array([name in numbers for name in graph.node_names])
    described = graph.described.numpy() if "described" in graph else np.ones(len(shared), dtype=bool)
    if not shared.any() or not (shared.sum() < len(numbers) if structural else (shared & ~described).any()):
        return graph
    # Where the nodes of the new graph are in the result.
    at = np.array([numbers.setdefault(name, len(numbers)) for name in graph.node_names])
    old, nodes = int(known.num_nodes), len(numbers)
    _logger.info("%s: new nodes beside the %d of the graph trained on: %d.", graph.name, old, nodes - old)
    classes = {name: number for number, name in enumerate(known.class_names)}
    labels = np.array([*(classes.get(name, -1) for name in graph.class_names), -1])[graph.y.numpy()]
    y = np.append(known.y.numpy(), np.full(nodes - old, -1))
    y[at[labels >= 0]] = labels[labels >= 0]
    result = Data(
        **_edges_of_both(known, graph, at, nodes),
        y=torch.from_numpy(y),
        node_names=list(numbers),
        class_names=known.class_names,
        feature_names=known.feature_names,
        **{key: getattr(graph, key) for key in ("name", "source", "sha256", "directed")},
    )
    if structural:
        result.num_nodes = nodes
        return with_features(structural_features(result), list(known.feature_names), known.x.shape[1])
    if lost := [name for name, known in zip(graph.node_names, shared | described, strict=True) if not known]:
        what = "%s: nodes that have no row and are not in the graph trained on count as nodes without features: %s."
        _logger.warning(what + " Add rows for them, or correct their names.", graph.name, _shown(lost))
    kept = np.setdiff1d(np.arange(old), at[described])
    new = np.flatnonzero(described)
    from_known = _selection(kept, kept, (nodes, old)) @ _matrix(known.x)
    result.x = _like(known.x, from_known + _selection(at[new], new, (nodes, len(at))) @ _matrix(graph.x))
    return result


def _edges_of_both(known: Data, graph: Data, at: NDArray[np.int64], nodes: int) -> dict[str, Tensor]:
    """The edges of both graphs, each once and in order, and their weights if either graph has any."""
    source, target = np.concatenate([known.edge_index.numpy(), at[graph.edge_index.numpy()]], axis=1)
    # Of an edge that both have, the last counts, which is the new graph's.
    unique, from_the_end = np.unique((source * nodes + target)[::-1], return_index=True)
    edges = {"edge_index": torch.from_numpy(np.stack(np.divmod(unique, nodes)))}
    weights = [getattr(one, "edge_weight", None) for one in (known, graph)]
    if any(weight is not None for weight in weights):
        both = zip((known, graph), weights, strict=True)
        filled = [torch.ones(one.edge_index.shape[1]) if weight is None else weight for one, weight in both]
        edges["edge_weight"] = torch.cat(filled)[torch.from_numpy(len(source) - 1 - from_the_end)]
    return edges


def _selection(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """A matrix of zeros with ones at these places; a product with it moves rows or columns, and changes no number."""
    return sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)


def _matrix(x: Tensor) -> Any:
    if x.layout is torch.strided:
        return sparse.csr_matrix(x.numpy())
    arrays = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return sparse.csr_matrix(arrays, shape=tuple(x.shape))


def _like(x: Tensor, matrix: Any) -> Tensor:
    """A matrix as a tensor, dense if `x` is."""
    matrix = sparse.csr_matrix(matrix)
    matrix.sort_indices()
    return torch.from_numpy(matrix.toarray()) if x.layout is torch.strided else sparse_tensor(matrix)


def _shown(names: list[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
