"""To PyTorch Geometric's `Data` and back; and from networkx, scipy and pandas."""

import logging
import warnings
from collections import UserList
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as scipy_sparse
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.data.cleaning import clean_and_warn
from cagat.data.graph import SPLIT_NAMES, Features, RawGraph, edges_of_matrix, renumbered
from cagat.data.validation import as_csr, as_float32, as_int64, as_names, require_memory
from cagat.errors import DatasetError

if TYPE_CHECKING:
    import networkx

    from cagat.data.encoding import TableEncoder

_log = logging.getLogger(__name__)
_KNOWN = {"x", "edge_index", "y", "edge_weight", "edge_attr", "num_nodes", "name", "source", "sha256", "directed"}
_KNOWN |= {"node_names", "class_names", "feature_names", *(f"{part}_mask" for part in SPLIT_NAMES)}
_KNOWN |= {"encoder", "described", "structural"}  # Of which a saved graph has no need: its features are encoded.


class Names(UserList[str]):
    """Names of classes or features; PyG's `subgraph` would cut a list that is as long as the graph has nodes."""


def prepare(
    graph: RawGraph, *, sparse: bool = False, directed: bool | None = None, largest_component: bool = False
) -> Data:
    """Clean a graph and convert it to a `Data`; `directed=None` is what the graph says itself."""
    graph = replace(graph, directed=graph.directed if directed is None else directed)
    return to_data(clean_and_warn(graph, largest_component=largest_component), sparse=sparse)


def to_data(graph: RawGraph, *, sparse: bool = False) -> Data:
    """Convert a clean graph to a `Data`, whose `node_names` follow `subgraph` and whose other names stay whole."""
    features, (rows, columns) = graph.features, graph.features.shape
    if not sparse:
        what = f"{graph.name}: {rows} x {columns} dense features"
        require_memory(what, 4 * rows * columns, "Load them with sparse=True.")
        features = features.toarray() if scipy_sparse.issparse(features) else features
    optional: dict[str, Any] = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    if graph.described is not None and not graph.described.all():
        optional["described"] = graph.described
    if graph.split_codes is not None:
        optional |= {f"{subset}_mask": graph.split_codes == code for code, subset in enumerate(SPLIT_NAMES, start=1)}
    return Data(
        x=sparse_tensor(scipy_sparse.csr_matrix(features)) if sparse else torch.tensor(features, dtype=torch.float32),
        edge_index=torch.from_numpy(np.ascontiguousarray(graph.edge_index)),
        y=torch.from_numpy(graph.labels),
        **{key: torch.from_numpy(values) for key, values in optional.items() if values is not None},
        **{key: getattr(graph, key) for key in ("name", "source", "sha256", "directed")},
        **({} if graph.encoder is None else {"encoder": graph.encoder}),
        node_names=list(graph.node_names),
        class_names=Names(graph.class_names),
        feature_names=Names(graph.feature_names),
    )


def sparse_tensor(matrix: Any) -> Tensor:
    """A copy of a scipy CSR matrix as a float32 tensor."""
    rows, columns = (torch.tensor(part, dtype=torch.int64) for part in (matrix.indptr, matrix.indices))
    values = torch.tensor(matrix.data, dtype=torch.float32)
    with warnings.catch_warnings():
        # torch says once per process that its CSR tensors are in beta, which users need not know.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(rows, columns, values, size=matrix.shape, check_invariants=True)


def from_data(data: Data) -> RawGraph:
    """Convert a PyG `Data` back to a graph that can be written to a file, or say why it cannot."""
    if not isinstance(data, Data):
        kind = type(data).__name__
        raise DatasetError(
            f"A graph is saved from a Data of PyG, not from a {kind}. Make one with Data(edge_index=...)."
        )
    if data.edge_index is None:
        raise DatasetError("The Data has no edge_index, so it is no graph. Set data.edge_index.")
    name = str(getattr(data, "name", None) or "graph")
    if unknown := sorted(set(data.keys()) - _KNOWN):
        _log.warning("%s: not saved, because cagat has no place for them: %s", name, ", ".join(unknown))
    nodes, directed = int(data.num_nodes or 0), getattr(data, "directed", None)
    arrays = {key: _numpy(key, data[key]) for key in ("y", "edge_weight", "edge_attr") if data.get(key) is not None}
    weight, attr = arrays.get("edge_weight"), arrays.get("edge_attr")
    return RawGraph(
        edge_index=as_int64(f"{name}: edge_index", _numpy("edge_index", data.edge_index), (2, None)),
        features=None if data.x is None else _features_of_tensor(data.x),
        labels=as_int64(f"{name}: y", arrays.get("y", np.full(nodes, -1)), (nodes,)),
        node_names=as_names("node_names", data.get("node_names") or ()),
        class_names=as_names("class_names", data.get("class_names") or ()),
        feature_names=as_names("feature_names", data.get("feature_names") or ()),
        edge_weight=None if weight is None else as_float32("edge_weight", weight),
        edge_attr=None if attr is None else as_float32("edge_attr", attr.reshape(len(attr), -1), 2),
        split_codes=_split_codes(data, nodes),
        directed=not data.is_undirected() if directed is None else bool(directed),
        name=name,
    ).check()


def _numpy(what: str, tensor: Any) -> NDArray[Any]:
    if not isinstance(tensor, Tensor):
        raise DatasetError(f"{what} of a Data must be a tensor, but is a {type(tensor).__name__}. Convert it to one.")
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.dtype is torch.bfloat16:
        raise DatasetError(
            f"{what} of a Data must be a dense tensor of a type that NumPy has, but is {tensor.dtype} on "
            f"{tensor.device}, {tensor.layout}. Convert it with .to_dense() or .float(), on a device such as cpu."
        )
    return np.asarray(tensor.detach().cpu())


def _features_of_tensor(x: Tensor) -> Features:
    if not is_torch_sparse_tensor(x):
        return as_float32("x", _numpy("x", x), 2)
    if x.dim() != 2:
        raise DatasetError(f"x of a Data must have shape (nodes, features), but has {tuple(x.shape)}. Reshape it.")
    x = x.to_sparse_csr()
    arrays = {
        "data": x.values(),
        "indices": x.col_indices(),
        "indptr": x.crow_indices(),
        "shape": torch.tensor(x.shape),
    }
    return as_csr("x", {name: _numpy("x", values) for name, values in arrays.items()})


def _split_codes(data: Data, nodes: int) -> NDArray[np.int8] | None:
    codes = np.zeros(nodes, dtype=np.int8)
    for code, subset in enumerate(SPLIT_NAMES, start=1):
        if (what := f"{subset}_mask") in data:
            mask = _numpy(what, data[what])
            if mask.dtype.kind != "b" or mask.shape != (nodes,):
                raise DatasetError(
                    f"{what} must be one truth value per node, of shape ({nodes},), but has type {mask.dtype} and "
                    f"shape {mask.shape}. Split(...).masks({nodes}) makes masks of node numbers."
                )
            codes[mask] = code
    return codes if codes.any() else None


def from_networkx(
    graph: "networkx.Graph",
    *,
    features: str | None = "x",
    label: str | None = "label",
    weight: str | None = "weight",
    directed: bool | None = None,
    largest_component: bool = False,
    sparse: bool = False,
) -> Data:
    """Convert a networkx graph to a `Data`; nodes keep their order, and `str(node)` is a node's name.

    Args:
        graph: Directed or not; parallel edges are merged.
        features: The node attribute that holds a list of numbers; a node without it has zeros. If no node has it,
            every node is a feature of its own.
        label: The node attribute that holds the class; a node without it, or with `None`, is unlabelled.
        weight: The edge attribute that holds the weight; if some edges have it, the others weigh 1.
        directed: Whether to keep directions; `None` for what the graph is.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
    """
    import networkx

    from cagat.data.tables import positions, sorted_names

    if not isinstance(graph, networkx.Graph):
        kind = type(graph).__name__
        raise DatasetError(f"The graph must be one of networkx, but is a {kind}. Make it with networkx.Graph(edges).")
    given = graph.nodes(data=label) if label else ()
    labels = {node: str(value) for node, value in given if value is not None}
    classes = sorted_names(list(set(labels.values())))
    raw = RawGraph(
        edge_index=positions([node for edge in graph.edges() for node in edge], list(graph)).reshape(-1, 2).T,
        features=_stacked(dict(graph.nodes(data=features))) if features else None,
        labels=positions([labels.get(node) for node in graph], classes),
        node_names=[str(node) for node in graph],
        class_names=classes,
        edge_weight=_weights(list(graph.edges(data=weight))) if weight else None,
        directed=graph.is_directed(),
        name=graph.name or "graph",
        source="a networkx graph",
    )
    return prepare(raw, sparse=sparse, directed=directed, largest_component=largest_component)


def _weights(edges: list[tuple[Any, Any, Any]]) -> NDArray[np.float32] | None:
    """The weights of edges, if any has one."""
    if all(weight is None for _, _, weight in edges):
        return None
    edge = edges[0]
    try:
        weights = [1.0 if (edge := each)[2] is None else float(edge[2]) for each in edges]
    except (TypeError, ValueError, OverflowError) as error:
        source, target, weight = edge
        raise DatasetError(
            f"The edge from {source!r} to {target!r} has the weight {weight!r:.80}, which is no number. Give it one, "
            "or pass weight=None to leave weights out."
        ) from error
    return as_float32("edge_weight", weights)


def _stacked(features: dict[Any, Any]) -> Features:
    """The features of all nodes, with zeros for a node without any; `None` if no node has any."""
    given = {node: row for node, row in features.items() if row is not None}
    for node, row in given.items():
        if not hasattr(row, "__len__"):
            raise DatasetError(f"Node {node!r} has the features {row!r:.80}, no list of numbers. Write [{row!r:.80}].")
    zeros = [0.0] * max(map(len, given.values()), default=0)
    return as_float32("features", [given.get(node, zeros) for node in features], 2) if given else None


def from_scipy(
    adjacency: Any,
    features: Any = None,
    labels: ArrayLike | None = None,
    *,
    node_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    directed: bool = False,
    largest_component: bool = False,
    sparse: bool = False,
) -> Data:
    """Convert a sparse adjacency matrix to a `Data`.

    Args:
        adjacency: Square; entry (i, j) is the edge from i to j. Entries that are not all 1 are weights.
        features: One row per node, sparse or dense; without them, every node is a feature of its own.
        labels: One integer per node, -1 for unlabelled.
        node_names: One per node; without them, their numbers.
        class_names: One per class; without them, their numbers, and classes without any node are left out.
        directed: Whether to keep directions.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
    """
    try:
        matrix = scipy_sparse.coo_matrix(adjacency)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"The adjacency must be a scipy sparse matrix or a square array of numbers, but is a "
            f"{type(adjacency).__name__} ({error}). Convert it with scipy.sparse.csr_array(...)."
        ) from error
    nodes = matrix.shape[0]
    if scipy_sparse.issparse(features):
        features = scipy_sparse.csr_matrix(features)
        features.data = as_float32("features", features.data)
    elif features is not None:
        features = as_float32("features", features, 2)
    codes = as_int64("labels", np.full(nodes, -1) if labels is None else labels, (nodes,))
    codes, names = renumbered(codes) if class_names is None else (codes, as_names("class_names", class_names))
    raw = RawGraph(
        **edges_of_matrix("adjacency", matrix),
        features=features,
        labels=codes,
        node_names=as_names("node_names", () if node_names is None else node_names),
        class_names=names,
        directed=directed,
        source="a scipy matrix",
    )
    return prepare(raw, sparse=sparse, largest_component=largest_component)


def from_frames(
    edges: Any,
    features: Any = None,
    labels: Any = None,
    splits: Any = None,
    *,
    directed: bool = False,
    largest_component: bool = False,
    sparse: bool = False,
    names: Mapping[str, str | None] | None = None,
    columns: Mapping[str, str] | None = None,
    encoder: "TableEncoder | None" = None,
) -> Data:
    """Convert pandas frames to a `Data`; their columns are those of the files that `docs/reference/data.md` describes.

    Args:
        edges: `source`, `target`, perhaps `weight`, and further columns as edge features.
        features: `node` and columns of any kind; or `node`, `feature` and `value`.
        labels: `node`, `label` and perhaps `split`.
        splits: `node` and `split`.
        directed: Whether to keep directions.
        largest_component: Whether to take only the largest component.
        sparse: Whether `x` becomes a sparse CSR tensor.
        names: What the columns of the roles `source`, `target`, `node` and `label` are called.
        columns: What columns of `features` hold; see :func:`cagat.data.load`.
        encoder: Encodes `features` as it did another table before.
    """
    import pyarrow as pa

    from cagat.data.columns import KINDS, TableOptions, find_columns
    from cagat.data.tables import Table, graph_from_tables

    tables, options = {}, TableOptions.of(names, columns, encoder)
    for kind, frame in zip(KINDS, (edges, features, labels, splits), strict=True):
        if frame is None and kind != "edges":
            continue
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (ValueError, TypeError, AttributeError) as error:
            raise DatasetError(f"{kind}: give a pandas frame with columns of one type each ({error}).") from error
        used = find_columns(kind, kind, table.column_names, options.names, labelled=labels is None)
        tables[kind] = Table(table, used, kind)
    graph = graph_from_tables(tables, options, directed=directed, source="pandas frames")
    return prepare(graph, sparse=sparse, largest_component=largest_component)
