"""Graphs from PyG, networkx, scipy and pandas."""

import networkx
import numpy as np
import pandas
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Data

from cagat.data import from_frames, from_networkx, from_scipy, load, save
from cagat.errors import DatasetError

ADJACENCY = sparse.coo_matrix(([1, 1], ([0, 2], [1, 1])), shape=(3, 3))


def test_names_features_labels_and_weights():
    graph = networkx.Graph(name="friends")
    graph.add_node("zoe", x=[1, 2], label="red")
    graph.add_node(7, x=[3, 4])
    graph.add_node(("a", "b"), label="blue")
    graph.add_edge("zoe", 7, weight=2.5)
    graph.add_edge(7, ("a", "b"))
    data = from_networkx(graph)
    assert data.name == "friends"
    assert data.node_names == ["zoe", "7", "('a', 'b')"]
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, -1, 0]
    assert data.x.tolist() == [[1, 2], [3, 4], [0, 0]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2.5, 2.5, 1, 1]


def test_directions_are_the_graph_s_unless_asked_otherwise():
    graph = networkx.DiGraph([(0, 1), (1, 2)])
    assert from_networkx(graph).edge_index.tolist() == [[0, 1], [1, 2]]
    assert from_networkx(graph, directed=False).num_edges == 4


def test_parallel_edges_loops_and_missing_attributes(caplog):
    graph = networkx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    data = from_networkx(graph, sparse=True)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert torch.equal(data.x.to_dense(), torch.eye(2))
    assert "1 self-loop dropped" in caplog.text
    assert "1 duplicate edge merged" in caplog.text


def test_other_attribute_names():
    graph = networkx.path_graph(2)
    networkx.set_node_attributes(graph, {0: [5.0], 1: [6.0]}, "embedding")
    networkx.set_node_attributes(graph, {0: 10, 1: 9}, "club")
    data = from_networkx(graph, features="embedding", label="club", weight=None)
    assert data.x.tolist() == [[5], [6]]
    assert data.class_names == ["9", "10"]


def test_features_of_different_lengths():
    graph = networkx.Graph()
    graph.add_node(0, x=[1])
    graph.add_node(1, x=[1, 2])
    with pytest.raises(DatasetError, match=r"features must be an array of numbers.*rows of equal length"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("node", "edge", "message"),
    [
        ({"x": 5}, {}, r"Node 0 has the features 5, .*Write \[5\]"),
        ({"x": [[1], [1, 2]]}, {}, r"features must be an array of numbers.*rows of equal length"),
        ({}, {"weight": "heavy"}, r"from 0 to 1 has the weight 'heavy'.*weight=None"),
        ({}, {"weight": [1]}, r"weight \[1\], which is no number"),
    ],
)
def test_attributes_that_are_no_numbers(node, edge, message):
    graph = networkx.Graph()
    graph.add_node(0, **node)
    graph.add_edge(0, 1, **edge)
    with pytest.raises(DatasetError, match=message):
        from_networkx(graph)


def test_what_is_no_networkx_graph():
    with pytest.raises(DatasetError, match=r"is a NoneType\. Make it with networkx\.Graph"):
        from_networkx(None)


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
        ({"features": [[1], [1, 2], [1]]}, "Give rows of equal length"),
        ({"adjacency": None}, r"is a NoneType .*csr_array"),
    ],
)
def test_matrices_that_do_not_fit(arguments, message):
    with pytest.raises(DatasetError, match=message):
        from_scipy(**{"adjacency": ADJACENCY, **arguments})


def test_frames_are_read_like_files():
    data = from_frames(
        pandas.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [0.5, 2]}),
        pandas.DataFrame({"node": [3, 1, 2], "f": [1.0, 2.0, 3.0], "g": [True, False, True]}),
        pandas.DataFrame({"node": [1, 2, 3], "label": [None, "p", "q"], "split": ["", "train", "test"]}),
    )
    assert data.node_names == ["3", "1", "2"]
    assert data.x.tolist() == [[1, 1], [2, 0], [3, 1]]
    assert data.y.tolist() == [1, -1, 0]
    assert data.edge_weight.tolist() == [2, 0.5, 2, 0.5]
    assert data.train_mask.tolist() == [False, False, True]


def test_missing_numbers_and_categories():
    edges = pandas.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
    labels = pandas.DataFrame({"node": ["a", "b", "c"], "label": [10, None, 9]})
    data = from_frames(edges, labels=labels, directed=True)
    assert data.class_names == ["9", "10"]
    assert data.y.tolist() == [1, -1, 0]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    kinds = pandas.Categorical(["x", "x", None], categories=["unused", "x"])
    data = from_frames(edges, labels=pandas.DataFrame({"node": ["a", "b", "c"], "label": kinds}))
    assert data.class_names == ["x"]
    assert data.y.tolist() == [0, 0, -1]


@pytest.mark.parametrize("edges", [[1, 2], pandas.DataFrame({"source": [1, "b"], "target": ["b", 2]})])
def test_what_is_no_frame(edges):
    with pytest.raises(DatasetError, match="pandas frame"):
        from_frames(edges)


def test_what_is_wrong_with_a_frame_is_named():
    edges = pandas.DataFrame({"source": ["a"], "target": ["b"]})
    with pytest.raises(DatasetError, match="features: column 'f' holds nothing but gaps"):
        from_frames(edges, pandas.DataFrame({"node": ["a", "b"], "f": [None, None]}))
    with pytest.raises(DatasetError, match="no column for the node among 'name,f'"):
        from_frames(edges, pandas.DataFrame({"name": ["a"], "f": [1.0]}))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"train_mask": torch.ones(3, dtype=torch.bool)}, r"train_mask must be .*shape \(34,\).* shape \(3,\)"),
        ({"val_mask": torch.arange(34)}, "val_mask must be one truth value per node.*int64"),
        ({"test_mask": [True] * 34}, r"test_mask of a Data must be a tensor, but is a list\. Convert"),
        ({"edge_weight": [1.0]}, "edge_weight of a Data must be a tensor, but is a list"),
        ({"x": torch.ones(34, 2, dtype=torch.bfloat16)}, r"bfloat16.*Convert it with"),
        ({"x": torch.ones(34, 2, 2).to_sparse()}, r"x of a Data must have shape \(nodes, features\)"),
        ({"x": torch.full((34, 1), float("nan"))}, "features holds 34 values that are NaN"),
        ({"y": torch.ones(34, dtype=torch.long).to_sparse()}, r"y of a Data must be a dense tensor.*to_dense"),
        ({"y": torch.ones(34)}, "y must be integers"),
        ({"y": torch.full((34,), 7)}, "label 7 is out of range"),
        ({"edge_index": torch.tensor([[0], [34]])}, "node 34 is out of range: nodes are 0 to 33"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "node -1 is out of range"),
        ({"edge_index": None}, "has no edge_index"),
        ({"node_names": list(range(1, 35))}, "node_names must be texts, but one is 1"),
        ({"node_names": ["a"] * 34}, "'a' occurs more than once"),
    ],
)
def test_a_data_that_does_not_fit_is_not_saved(tmp_path, attributes, message):
    graph = load("karate")
    graph.update(attributes)
    with pytest.raises(DatasetError, match=message):
        save(graph, tmp_path / "karate.npz")
    assert not list(tmp_path.iterdir())


def test_what_is_no_data_and_no_path():
    with pytest.raises(DatasetError, match=r"not from a NoneType. Make one with Data\("):
        save(None, "karate.npz")
    with pytest.raises(DatasetError, match=r"not to None. Give one that ends in \.npz"):
        save(load("karate"), None)
    with pytest.raises(DatasetError, match="there are no nodes"):
        save(Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0), "karate.npz")
