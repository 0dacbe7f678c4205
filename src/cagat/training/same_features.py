"""A new graph with the features that a model knows."""

import torch
from torch_geometric.data import Data

from cagat.errors import DatasetError


def with_features(graph: Data, names: list[str] | None, count: int) -> Data:
    """The graph with its features in the order in which a model was trained on them.

    Features that have names are found by them; one that no node of the new graph has is 0 everywhere.

    Args:
        graph: The new graph.
        names: The names of the features that the model was trained on, if they had any.
        count: Their number.

    Raises:
        DatasetError: The graph has a feature that the model does not know; or, without names, another number of them.
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
    place = {name: number for number, name in enumerate(names)}
    for name in given:
        if name not in place:
            raise DatasetError(
                f"{graph.name}: has a feature {name!r}, which the model was not trained with. Leave it out, or "
                "train on a graph that has it."
            )
    columns = torch.tensor([place[name] for name in given])
    graph = graph.clone()
    dense = graph.x.to_dense()
    graph.x = dense.new_zeros(dense.shape[0], count).index_copy(1, columns, dense)
    return graph
