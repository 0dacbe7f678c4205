"""The last step of every way to a graph: tidy it, say what was strange, and hand it over."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from cagat.data.raw_graph import RawGraph
from cagat.data.tidy import tidy

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger("cagat.data")


def tidied(graph: RawGraph, *, largest_component: bool = False) -> RawGraph:
    """Tidy a graph (see :func:`cagat.data.tidy.tidy`) and say, in one message, what was strange about it."""
    graph, oddities = tidy(graph, largest_component=largest_component)
    if sentences := oddities.sentences():
        _log.warning("%s: %s.", graph.name, "; ".join(sentences))
    return graph


def prepare(
    graph: RawGraph, *, sparse: bool = False, directed: bool | None = None, largest_component: bool = False
) -> "Data":
    """Tidy a graph and turn it into a `Data`.

    Args:
        graph: As read or built.
        sparse: Whether `x` becomes a sparse CSR tensor.
        directed: Whether to keep directions; `None` for what the graph says itself.
        largest_component: Whether to keep only the largest component.
    """
    from cagat.data.pyg import to_data

    if directed is not None:
        graph = replace(graph, directed=directed)
    return to_data(tidied(graph, largest_component=largest_component), sparse_features=sparse)
