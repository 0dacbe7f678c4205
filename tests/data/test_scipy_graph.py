"""Graphs from scipy's sparse matrices."""

import numpy as np
import pytest
import torch
from scipy import sparse

from cagat.data import from_scipy
from cagat.errors import DatasetError

ADJACENCY = sparse.coo_matrix(([1, 1], ([0, 2], [1, 1])), shape=(3, 3))


@pytest.mark.parametrize("layout", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, np.asarray])
def test_any_layout(layout):
    data = from_scipy(layout(ADJACENCY.toarray()))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.node_names == ["0", "1", "2"]
    assert "edge_weight" not in data
    assert torch.equal(data.x, torch.eye(3))


def test_features_labels_names_and_directions():
    data = from_scipy(
        ADJACENCY * 2.5,
        sparse.csr_matrix([[1, 0], [0, 0], [0, 3]]),
        [0, -1, 1],
        node_names=["a", "b", "c"],
        class_names=["p", "q"],
        directed=True,
        sparse=True,
    )
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]
    assert data.edge_weight.tolist() == [2.5, 2.5]
    assert data.x.layout is torch.sparse_csr
    assert data.x.to_dense().tolist() == [[1, 0], [0, 0], [0, 3]]
    assert data.y.tolist() == [0, -1, 1]
    assert data.node_names == ["a", "b", "c"]
    assert data.class_names == ["p", "q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"adjacency": np.ones((2, 3))}, "square"),
        ({"features": np.ones(3)}, "features must be numbers in 2 dimensions"),
        ({"features": np.ones((2, 2))}, "length 2, expected 3"),
        ({"features": np.array([["a"], ["b"], ["c"]])}, "features must be numbers"),
        ({"labels": [0.5, 1, 2]}, "labels must be integers"),
        ({"labels": [0, 1]}, r"shape \(3\)"),
        ({"labels": [0, 1, 2], "class_names": ["p"]}, "label 2 is out of range"),
        ({"node_names": ["a", "a", "b"]}, "more than once"),
        ({"node_names": [1, 2, 3]}, r"node_names must be texts, but one is 1\. Convert"),
        ({"node_names": "abc"}, "'abc'. Put the names into a list"),
        ({"node_names": 3}, "but is 3. Put the names into a list"),
        ({"labels": [0, 1, 0], "class_names": [0, 1]}, "class_names must be texts, but one is 0"),
        ({"features": [[1], [1, 2], [1]]}, "Give rows of one length"),
        ({"adjacency": None}, r"is a NoneType .*csr_array"),
    ],
)
def test_what_does_not_fit(arguments, message):
    with pytest.raises(DatasetError, match=message):
        from_scipy(**{"adjacency": ADJACENCY, **arguments})
