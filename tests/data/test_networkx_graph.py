"""Graphs from networkx."""

import networkx
import pytest
import torch

from cagat.data import from_networkx
from cagat.errors import DatasetError


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
    with pytest.raises(DatasetError, match="different lengths: 1, 2"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("node", "edge", "message"),
    [
        ({"x": 5}, {}, r"Node 0 has the features 5, .*Write \[5\]"),
        ({"x": [[1], [1, 2]]}, {}, r"features must be an array of numbers.*rows of one length"),
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


def test_what_is_no_graph():
    with pytest.raises(DatasetError, match=r"is a NoneType\. Make it with networkx\.Graph"):
        from_networkx(None)
