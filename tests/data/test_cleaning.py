"""From raw edges to the graph that is computed on, against networkx."""

from dataclasses import replace

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cagat.data.cleaning import clean
from cagat.data.graph import RawGraph

EDGES = st.integers(1, 12).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes), st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=40)
    )
)


def raw(nodes, edges, **more):
    return RawGraph(
        edge_index=np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        features=np.eye(nodes, dtype=np.float32),
        labels=np.zeros(nodes, dtype=np.int64),
        node_names=[f"n{node}" for node in range(nodes)],
        class_names=["only"],
        **more,
    )


def weights(graph):
    return dict(zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_weight.tolist(), strict=True))


@given(EDGES, st.booleans(), st.booleans())
def test_equals_networkx(drawn, directed, largest_component):
    nodes, edges = drawn
    graph, report = clean(raw(nodes, edges, directed=directed), largest_component=largest_component)
    oracle = networkx.DiGraph(edges) if directed else networkx.Graph(edges)
    oracle.add_nodes_from(range(nodes))
    oracle.remove_edges_from(list(networkx.selfloop_edges(oracle)))
    parts = sorted(networkx.connected_components(oracle.to_undirected()), key=lambda part: (-len(part), min(part)))
    if largest_component:
        oracle = oracle.subgraph(parts[0])
    expected = sorted(oracle.to_directed().edges())
    names = graph.node_names
    assert [(int(names[s][1:]), int(names[t][1:])) for s, t in graph.edge_index.T] == expected
    assert graph.num_nodes == len(oracle)
    assert names == [f"n{node}" for node in sorted(oracle)]
    assert report.self_loops == sum(source == target for source, target in edges)
    assert report.duplicate_edges == len([e for e in edges if e[0] != e[1]]) - len({e for e in edges if e[0] != e[1]})
    assert report.outside_component == nodes - len(parts[0])
    assert np.array_equal(graph.features, np.eye(nodes, dtype=np.float32)[sorted(oracle)])


def test_duplicates_add_up_their_weights_and_average_their_features():
    graph, report = clean(
        raw(
            3,
            [(0, 1), (0, 1), (1, 2)],
            edge_weight=np.array([1, 2, 4], dtype=np.float32),
            edge_attr=np.array([[1, 0], [3, 0], [5, 7]], dtype=np.float32),
        )
    )
    assert weights(graph) == {(0, 1): 3, (1, 0): 3, (1, 2): 4, (2, 1): 4}
    assert graph.edge_attr.tolist() == [[2, 0], [2, 0], [5, 7], [5, 7]]
    assert report.duplicate_edges == 1
    assert report.opposite_edges == 0


def test_a_list_that_has_every_edge_both_ways_is_taken_as_it_stands():
    both = raw(3, [(0, 1), (1, 0), (1, 2), (2, 1)], edge_weight=np.array([3, 3, 4, 4], dtype=np.float32))
    graph, report = clean(both)
    assert weights(graph) == {(0, 1): 3, (1, 0): 3, (1, 2): 4, (2, 1): 4}
    assert report.opposite_edges == 0


@pytest.mark.parametrize("last", [(2, 1, 5.0), None])
def test_any_other_list_adds_up_opposite_weights_and_says_so(last):
    edges, weight = [(0, 1), (1, 0), (1, 2)], [3.0, 3.0, 4.0]
    if last:
        edges, weight = [*edges, last[:2]], [*weight, last[2]]
    graph, report = clean(raw(3, edges, edge_weight=np.array(weight, dtype=np.float32)))
    assert weights(graph) == {
        (0, 1): 6,
        (1, 0): 6,
        (1, 2): 4 + (last[2] if last else 0),
        (2, 1): 4 + (last[2] if last else 0),
    }
    assert report.opposite_edges == (2 if last else 1)


def test_directions_are_kept_on_request():
    graph, _ = clean(raw(2, [(1, 0)], edge_weight=np.array([2], dtype=np.float32), directed=True))
    assert weights(graph) == {(1, 0): 2}


def test_what_is_strange_is_said_with_counts():
    graph = raw(4, [(0, 0), (0, 1), (0, 1), (1, 2), (1, 2)])
    graph.features[2] = 0
    _, report = clean(graph)
    assert report.sentences() == [
        "1 self-loop dropped (the layer adds one to every node)",
        "2 duplicate edges merged",
        "1 node outside the largest component kept",
        "1 node without features",
    ]
    _, report = clean(graph, largest_component=True)
    assert "1 node outside the largest component dropped" in report.sentences()


def test_nothing_strange_nothing_said():
    graph = raw(41, [(node, node + 1) for node in range(40)])
    assert clean(graph)[1].sentences() == []


def test_sparse_features_are_put_in_order():
    matrix = sparse.csr_matrix((3, 3), dtype=np.float32)
    matrix.indptr, matrix.indices = np.array([0, 3, 4, 4]), np.array([2, 0, 2, 1])
    matrix.data = np.array([1, 2, 3, 0], dtype=np.float32)
    graph, report = clean(replace(raw(3, [(0, 1), (1, 2)]), features=matrix))
    assert graph.features.indices.tolist() == [0, 2]
    assert graph.features.data.tolist() == [2, 4]
    assert report.without_features == 2
    assert matrix.nnz == 4
