"""From whatever a layer is given as `edge_index` to a prepared graph, made once."""

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels.csr_graph import CSRGraph
from cagat.kernels.edge_arguments import require_dense, require_tensor
from cagat.kernels.tensor_cache import TensorCache

_graphs = TensorCache()


@torch.compiler.disable  # type: ignore[untyped-decorator]
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
    # Before anything is remembered, since only tensors can be.
    require_tensor("edge_index", edge_index)
    if edge_weight is not None:
        require_dense("edge_weight", edge_weight)
    if isinstance(edge_index, EdgeIndex):
        edge_index = edge_index.as_tensor()

    def make() -> CSRGraph:
        edges, values = _edges_of(edge_index, num_nodes)
        return CSRGraph.from_edge_index(
            edges,
            num_nodes,
            values if edge_weight is None and values_are_weights else edge_weight,
            add_self_loops=add_self_loops,
            normalization=normalization,
            dtype=dtype,
        )

    tensors = (edge_index,) if edge_weight is None else (edge_index, edge_weight)
    graph: CSRGraph = _graphs.get(tensors, (num_nodes, add_self_loops, values_are_weights), make)
    return graph


def _edges_of(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    if not is_torch_sparse_tensor(edge_index):
        return edge_index, None
    if tuple(edge_index.shape[:2]) != (num_nodes, num_nodes):
        raise ValueError(
            f"the sparse adjacency matrix has shape {tuple(edge_index.shape)}, but there are {num_nodes} nodes"
        )
    if edge_index.requires_grad:
        raise ValueError("the values of a sparse adjacency matrix get no gradient; pass edge_index.detach()")
    coo = edge_index.detach().to_sparse(layout=torch.sparse_coo).coalesce()
    if coo.sparse_dim() != 2:
        raise ValueError(
            f"the sparse adjacency matrix must be sparse in rows and columns, and in nothing else, but is so in "
            f"{coo.sparse_dim()} dimensions of shape {tuple(coo.shape)}; pass edge_index.to_dense().to_sparse(2)"
        )
    target, source = coo.indices()
    return torch.stack([source, target]), coo.values()
