"""What edges, weights and the operands of products must be: public functions check it once, inner calls do not."""

from collections.abc import Collection
from numbers import Integral

import torch
from torch import Tensor

from cagat.errors import wrong_value
from cagat.kernels.csr_pattern import CSRPattern
from cagat.memory import require_memory

# Where nodes are numbered with large gaps, memory is short before there is an edge.
_MANY_NODES, _BYTES_PER_NODE = 10_000_000, 64

# Torch stores other unsigned integers, but hardly computes with them.
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def require_tensor(name: str, value: object) -> None:
    """Raise unless the value is a tensor, of any layout, that holds data."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got a {type(value).__name__}; convert with torch.as_tensor({name})")
    if value.device.type == "meta":
        raise ValueError(f"{name} is on the device meta and has no data; make it on a device such as cpu")


def require_dense(name: str, value: object) -> None:
    """Raise unless the value is a dense tensor that holds data."""
    require_tensor(name, value)
    if isinstance(value, Tensor) and value.layout is not torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got one of layout {value.layout}; pass {name}.to_dense()")


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """Raise unless these are edges between so many nodes, as PyG writes them."""
    require_tensor("edge_index", edge_index)
    if edge_index.layout is not torch.strided:
        raise TypeError(
            f"edge_index must be a dense tensor of shape (2, number of edges), got one of layout {edge_index.layout}; "
            "give its sources and targets, or pass a COO, CSR or CSC matrix to the layer itself"
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape (2, number of edges), got {tuple(edge_index.shape)}")
    if edge_index.dtype not in _INTEGERS:
        raise TypeError(
            f"edge_index must hold integers of a type that torch computes with, got {edge_index.dtype}; convert with "
            "edge_index.long()"
        )
    if not isinstance(num_nodes, Integral) or num_nodes < 0:
        raise ValueError(f"num_nodes must be an integer not below 0, got {num_nodes!r}")
    if num_nodes > _MANY_NODES:
        require_memory(_BYTES_PER_NODE * num_nodes, f"A graph of {num_nodes} nodes", "Number the nodes without gaps.")
    if edge_index.numel() == 0:
        return
    low, high = (int(extreme) for extreme in edge_index.aminmax())
    if low < 0 or high >= num_nodes:
        raise IndexError(
            f"edge_index names node {low if low < 0 else high}, but nodes are numbered from 0 to {num_nodes - 1}; "
            "renumber the edges or give a feature row to every node"
        )


def checked_weight(edge_weight: Tensor, edges: Tensor) -> Tensor:
    """A copy of the edge weights in double precision, one per column of ``edges``."""
    require_dense("edge_weight", edge_weight)
    if edge_weight.is_complex():
        raise TypeError(f"edge weights must be real, got {edge_weight.dtype}; pass edge_weight.abs()")
    if edge_weight.requires_grad:
        raise ValueError("edge weights are constants of the layer and get no gradient; pass edge_weight.detach()")
    if edge_weight.dim() == 2 and edge_weight.size(1) == 1:
        edge_weight = edge_weight.squeeze(1)
    if edge_weight.shape != edges.shape[1:]:
        raise ValueError(
            f"edge weights must have shape ({edges.size(1)},), one for each edge, got {tuple(edge_weight.shape)}"
        )
    weight = edge_weight.to(edges.device, torch.float64, copy=True)
    valid = weight.isfinite() & (weight >= 0)
    if not valid.all():
        edge = int((~valid).nonzero()[0, 0])
        raise ValueError(f"edge weights must be finite and not negative, but edge {edge} has {float(weight[edge])}")
    # They are summed for edges that are given twice, and for degrees.
    if not weight.sum().isfinite():
        raise ValueError(
            f"edge weights are up to {float(weight.max()):g} and add up to more than float64 can hold; scale them, for "
            "instance with edge_weight / edge_weight.max()"
        )
    return weight


def check_adjacency(adjacency: Tensor, num_nodes: int) -> None:
    """Raise unless a sparse matrix is the adjacency between so many nodes."""
    if tuple(adjacency.shape[:2]) != (num_nodes, num_nodes):
        raise ValueError(
            f"the sparse adjacency matrix has shape {tuple(adjacency.shape)}, but there are {num_nodes} nodes"
        )
    if adjacency.requires_grad:
        raise ValueError("the values of a sparse adjacency matrix get no gradient; pass edge_index.detach()")
    dimensions = adjacency.dim() - adjacency.dense_dim()
    if dimensions != 2:
        raise ValueError(
            f"the sparse adjacency matrix must be sparse in rows and columns, and in nothing else, but is so in "
            f"{dimensions} dimensions of shape {tuple(adjacency.shape)}; pass edge_index.to_dense().to_sparse(2)"
        )


def require_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(wrong_value(name, f"one of {', '.join(choices)}", value))


def check_operands(product: str, pattern: CSRPattern, **operands: tuple[Tensor, int | None, int]) -> None:
    """Raise unless the operands of a product fit each other and the pattern: compiled loops would read other memory.

    Args:
        product: The product's name.
        pattern: The pattern.
        **operands: Each tensor with the number of dimensions (``None`` for any) and of rows that it must have. Those
            with fixed dimensions must have equally many heads, which are the second dimension, and of those with three
            also equally many channels.
    """
    dtypes = {name: operand[0].dtype for name, operand in operands.items()}
    if len(set(dtypes.values())) > 1 or not next(iter(dtypes.values())).is_floating_point:
        told = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise TypeError(f"{product}: all inputs must have one floating-point dtype, got {told}; convert with .to()")
    sizes: tuple[int, ...] = ()
    for name, (tensor, dim, rows) in operands.items():
        if tensor.device != pattern.col.device:
            raise ValueError(
                f"{product}: {name} is on {tensor.device}, but the graph on {pattern.col.device}; move one with .to()"
            )
        if dim is not None and tensor.dim() != dim:
            raise ValueError(f"{product}: {name} must have {dim} dimensions, got shape {tuple(tensor.shape)}")
        if tensor.size(0) != rows:
            raise ValueError(f"{product}: {name} has {tensor.size(0)} rows where the pattern asks for {rows}")
        if dim is None:
            continue
        for what, size, before in zip(("heads", "channels"), tensor.shape[1:], sizes, strict=False):
            if size != before:
                raise ValueError(f"{product}: {name} has {size} {what} where the others have {before}")
        sizes = max(sizes, tuple(tensor.shape[1:]), key=len)
