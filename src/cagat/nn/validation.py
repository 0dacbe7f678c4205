"""What layers must be made with and called with, and why a result is not finite."""

import math
import numbers
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.errors import NO_LIMIT, NonFiniteError, expected_number, nearest, wrong_value
from cagat.kernels import CSRGraph
from cagat.kernels.validation import require_choice as require_choice
from cagat.kernels.validation import require_dense, require_tensor
from cagat.settings import SETTINGS

if TYPE_CHECKING:
    from cagat.nn.sparse_features import Features

LARGEST = 1e30
"""Of numbers without a limit of their own: what is larger, or soon what is computed with it, float32 cannot hold."""

NOT_BIPARTITE = "CaGAT diffuses attention from nodes to the same nodes, so bipartite graphs are not possible"

# What the settings of a run call the layer's arguments that have another name here.
_SETTING_OF = {"K": "rounds", "T": "steps"}

# PyG's arguments of message passing, which only repeat what the layer does anyway.
_MESSAGE_PASSING = {"aggr": "add", "flow": "source_to_target", "decomposed_layers": 1}


def check_message_passing(given: dict[str, Any], own: Iterable[str]) -> None:
    """Raise unless arguments that a layer does not know are PyG's, with the values that hold anyway."""
    known = [*own, *_MESSAGE_PASSING]
    for name, value in given.items():
        if name not in _MESSAGE_PASSING:
            raise TypeError(f"the layer has no argument {name!r}.{nearest(name, known)}")
        if value != _MESSAGE_PASSING[name]:
            raise ValueError(f"{name}={value!r} is not supported: CaGAT sums over all edges into a node")


def check_settings(**values: Any) -> None:
    """Raise unless arguments have values that :data:`cagat.settings.SETTINGS` allows."""
    for name, value in values.items():
        setting = SETTINGS[_SETTING_OF.get(name, name)]
        if setting.choices:
            require_choice(name, value, setting.choices)
        elif setting.kind is bool:
            require_switches(**{name: value})
        elif setting.kind is int:
            require_integer(name, value, int(setting.low or 0), int(setting.high or 0))
        else:
            require_within(name, value, setting.low or 0, setting.high or 0)
    if values.get("support") == "edges" and values.get("affinity") == "full":
        raise ValueError('support="edges" keeps S on the edges, so affinity="full" is not possible; use "edges"')
    if values.get("support") == "edges" and values.get("normalization") == "walk":
        raise ValueError('support="edges" goes with normalization="row" or "sym", not with "walk": change one of them')


def require_switches(**switches: bool) -> None:
    """Raise unless each argument is true or false: to Python, any text but the empty one counts as true."""
    for name, value in switches.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(wrong_value(name, "true or false", value))


def require_integer(name: str, value: int, low: int, high: int = NO_LIMIT) -> None:
    """Raise unless the value is an integer of the range."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(wrong_value(name, expected_number(int, low, high, value), value))


def require_sizes(**sizes: int) -> None:
    """Raise unless each argument is an integer of at least 1."""
    for name, value in sizes.items():
        require_integer(name, value, 1)


def checked_input_size(name: str, value: int) -> int:
    """The value as Python's integer, if it is at least 1, or the -1 that waits for the first input."""
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be one number, got {value!r:.80}: {NOT_BIPARTITE}")
    if isinstance(value, bool) or (value < 1 and value != -1):
        raise ValueError(wrong_value(name, "a whole number of at least 1, or -1 to take it from x", value))
    require_integer(name, value, -1)
    return int(value)  # PyG takes any other kind of integer for the sizes of two sets of nodes.


def require_within(name: str, value: Any, low: float, high: float) -> None:
    """Raise unless the value is a number of the range, its ends included."""
    is_number = isinstance(value, numbers.Real)
    if not is_number or not low <= value <= high:  # A comparison with NaN is false.
        error = ValueError if is_number else TypeError
        raise error(wrong_value(name, expected_number(float, low, high, value), value))


def checked_fill_value(fill_value: Any) -> float | Tensor | str | None:
    """The features of self-loops as PyG takes them, if they are numbers, or named by a way to find them."""
    if isinstance(fill_value, str):
        require_choice("fill_value", fill_value, ("mean", "add", "sum", "min", "max", "mul"))
    elif isinstance(fill_value, Tensor):
        require_dense("fill_value", fill_value)
        if fill_value.is_complex() or not fill_value.isfinite().all():
            raise ValueError("fill_value must hold real, finite numbers; pass torch.nan_to_num(fill_value.real)")
    elif fill_value is not None:
        require_within("fill_value", fill_value, -LARGEST, LARGEST)
        return float(fill_value)  # PyG does not know all of NumPy's numbers.
    return cast("Tensor | str | None", fill_value)


def check_features(x: object) -> None:
    """Raise unless node features are a matrix, dense or sparse, that holds data and asks for no gradient in vain."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be one tensor of node features, got {type(x).__name__}: {NOT_BIPARTITE}")
    require_tensor("x", x)
    if x.dim() != 2:
        raise ValueError(f"x must have shape (number of nodes, number of features), got {tuple(x.shape)}")
    if not is_torch_sparse_tensor(x):
        return
    if x.requires_grad:
        raise ValueError("sparse features get no gradient; pass x.to_dense() to differentiate with respect to x")
    if x.dense_dim():
        raise ValueError("features must be sparse in rows and columns; pass x.to_dense().to_sparse()")


def require_fitting(name: str, features: "Features", weight: Tensor, size_name: str) -> None:
    """Raise unless features have the dtype and the width of the weights, whose width the argument ``size_name`` set."""
    dtype = features.dtype
    # Autocast converts what a product takes, but no double precision.
    converted = torch.is_autocast_enabled(weight.device.type) and dtype.is_floating_point and dtype != torch.float64
    if dtype != weight.dtype and not converted:
        raise TypeError(f"{name} is {dtype}, but the layer is {weight.dtype}; convert with {name}.to({weight.dtype})")
    width = features.shape[1]
    if not isinstance(weight, UninitializedParameter) and width != weight.size(1):
        raise ValueError(f"{name} has {width} features, but the layer takes {weight.size(1)}; set {size_name}={width}")


def check_edges(edge_index: object, edge_attr: object, edge_dim: int | None) -> None:
    """Raise unless edges are a tensor or a prepared graph, with features or weights as the layer takes them."""
    if not isinstance(edge_index, (Tensor, CSRGraph)):
        got = f"got a {type(edge_index).__name__}; convert with torch.as_tensor(edge_index)"
        raise TypeError(f"edge_index must be a tensor, dense or sparse, or a CSRGraph, {got}")
    if isinstance(edge_index, Tensor):
        require_tensor("edge_index", edge_index)
    if edge_attr is None:
        return
    require_dense("edge_attr", edge_attr)
    assert isinstance(edge_attr, Tensor)
    if edge_attr.is_complex():
        raise TypeError(f"edge_attr must be real, got {edge_attr.dtype}; pass edge_attr.real or edge_attr.abs()")
    if edge_attr.dim() not in (1, 2):
        raise ValueError(f"edge_attr must have shape (edges,) or (edges, features), got {tuple(edge_attr.shape)}")
    if edge_dim is None and edge_attr.dim() > 1 and edge_attr.size(1) > 1:
        width = edge_attr.size(1)
        raise ValueError(f"edge_attr has {width} features, but the layer takes none; make it with edge_dim={width}")
    if edge_dim is None and isinstance(edge_index, CSRGraph):
        raise ValueError("a prepared graph has its own weights; give edge_weight to CSRGraph.from_edge_index")


def check_edge_features(graph: CSRGraph, edge_attr: Tensor, fill_value: object) -> None:
    """Raise unless every given edge has features ``(edges, D)``, and those of added self-loops fit them."""
    if edge_attr.size(0) != graph.num_given:
        raise ValueError(f"edge_attr has {edge_attr.size(0)} rows for {graph.num_given} edges")
    if graph.has_added_loops and isinstance(fill_value, Tensor):
        width, shape = edge_attr.size(1), tuple(fill_value.shape)
        ends = zip(reversed(shape), (width, graph.num_nodes), strict=False)
        if len(shape) > 2 or any(size not in (1, wanted) for size, wanted in ends):
            raise ValueError(f"fill_value has shape {shape}, but edges have {width} features; give it shape ({width},)")


def require_all_nodes(x: "Features", graph: CSRGraph) -> None:
    """Raise unless there are features of each node of the graph."""
    if graph.num_nodes != x.shape[0]:
        raise ValueError(f"the graph has {graph.num_nodes} nodes, but x has {x.shape[0]} rows")


def require_square(size: object, num_nodes: int) -> None:
    """Raise unless PyG's ``size`` of a graph says what is known anyway."""
    if size is not None and (not isinstance(size, (tuple, list)) or tuple(size) != (num_nodes, num_nodes)):
        raise ValueError(f"size must be None or ({num_nodes}, {num_nodes}), got {size!r:.80}: {NOT_BIPARTITE}")


def chosen_nodes(nodes: int | list[int] | Tensor, graph: CSRGraph) -> Tensor:
    """The numbers of the nodes that are meant by a number, numbers or a mask."""
    try:
        chosen = torch.as_tensor(nodes, device=graph.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"nodes must be numbers or a mask, got {nodes!r:.80}; pass a list or tensor") from error
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


def require_finite(result: Tensor, x: "Features", edge_attr: Tensor | None, weights: Iterable[Tensor]) -> None:
    """Raise if a result is infinite or not a number and the features are to blame.

    One sum, which costs next to nothing, tells whether the reason must be looked for. Weights that are not finite are
    left to whoever trains them. Nothing is looked at while a network is compiled, nor on other devices than the CPU,
    which would have to be waited for.
    """
    if torch.compiler.is_compiling() or result.device.type != "cpu":
        return
    with torch.no_grad():
        # As a number: torch's isfinite of one takes longer than the sum.
        if math.isfinite(result.sum().item()) or result.isfinite().all():
            return
        values = x if isinstance(x, Tensor) else x.values
        for name, given in (("x", values), ("edge_attr", edge_attr)):
            wrong = 0 if given is None else int((~given.isfinite()).sum())
            if wrong:
                remedy = f"fill or remove them, for instance with torch.nan_to_num({name})"
                raise NonFiniteError(f"{name} holds {wrong} values that are NaN or infinite; {remedy}")
        if all(weight.isfinite().all() for weight in weights):
            largest = float(values.abs().max())
            raise NonFiniteError(
                f"the layer's result is too large for {result.dtype}, since features are up to {largest:.3g}; scale "
                "them, for instance with cagat.data.normalize_features(x), or compute in float64"
            )
