import warnings

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse

from cagat import CaGAT
from cagat.errors import DatasetError
from cagat.estimator.graphs import Edges, edges_of, warn_of_one_way_edges


def pairs(edges):
    return {(source, target) for source, target in edges.edge_index.T.tolist()}


def test_a_matrix_counts_both_ways_and_carries_weights():
    edges = edges_of(sparse.csr_array(([2.0, 3.0], ([0, 1], [1, 2])), shape=(3, 3)), 3)
    weights = dict(zip(map(tuple, edges.edge_index.T.tolist()), edges.weight.tolist(), strict=True))
    assert weights == {(0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3}


def test_an_edge_index_is_taken_as_it_is():
    for graph in (torch.tensor([[0, 1, 0], [1, 2, 1]]), np.array([[0, 1], [1, 2]]), [[0, 1], [1, 2]]):
        edges = edges_of(graph, 3)
        assert pairs(edges) == {(0, 1), (1, 2)}
        assert edges.edge_index.size(1) == 2
        assert edges.weight is None


def test_networkx_says_itself_whether_it_is_directed():
    assert pairs(edges_of(networkx.path_graph(3), 3)) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert pairs(edges_of(networkx.DiGraph([(2, 0), (0, 1)]), 3)) == {(2, 0), (0, 1)}
    assert pairs(edges_of(networkx.DiGraph([("b", "a"), ("a", "c")]), 3)) == {(0, 1), (1, 2)}
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([(1, 0, 0.5)])
    assert edges_of(weighted, 2).weight.tolist() == [0.5, 0.5]


ONE_WAY = np.array([[0, 0, 1, 2], [1, 2, 2, 2]])


def test_edges_that_stand_one_way_are_told():
    with pytest.warns(
        UserWarning, match=r"^3 of the 3 edges of graph stand one way only\. .*, so 2 of 4 nodes"
    ) as found:
        warn_of_one_way_edges(ONE_WAY, edges_of(ONE_WAY, 4), 4)
    assert len(found) == 1
    assert "Undirected, the graph has 6 edges, and 1 nodes attend to no other" in str(found[0].message)


@pytest.mark.parametrize(
    "graph",
    [
        np.concatenate([ONE_WAY, ONE_WAY[::-1]], axis=1),
        np.array([[0, 1, 2, 3, 3], [1, 0, 3, 2, 0]]),  # One edge of five: that is meant.
        np.empty((2, 0), dtype=int),
        sparse.csr_array(([1.0], ([0], [1])), shape=(4, 4)),
        networkx.DiGraph([(0, 1), (1, 2), (2, 3)]),
    ],
)
def test_other_graphs_are_not_warned_of(graph):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_one_way_edges(graph, edges_of(graph, 4), 4)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (sparse.eye_array(4), r"matrix of shape \(4, 4\), but X has 3 rows"),
        (networkx.path_graph(4), "networkx graph with 4 nodes, but X has 3 rows"),
        (np.array([[0, 3], [1, 0]]), "node 3 is out of range: X has 3 rows, so nodes are 0 to 2"),
        (np.array([[0, -1], [1, 0]]), "node -1 is out of range"),
        (np.array([[0.0, 1.0], [1.0, 2.0]]), "must be integers .*type float64.*astype"),
        (np.eye(3), r"ndarray: .*shape \(3, 3\). A dense adjacency matrix becomes a sparse one"),
        ("cora", "got str"),
        (sparse.csr_array(([-2.0], ([0], [1])), shape=(3, 3)), "-2.0 for the edge from '0' to '1'; weights must be"),
        (networkx.Graph([(0, 1, {"weight": -2}), (1, 2)]), "-2.0 for the edge from '0' to '1'; weights must be"),
        (sparse.csr_array(([np.nan], ([0], [1])), shape=(3, 3)), "NaN"),
    ],
)
def test_what_is_no_graph_of_these_nodes_is_refused(graph, message):
    with pytest.raises(DatasetError, match=message):
        edges_of(graph, 3)


@pytest.mark.parametrize(
    ("normalization", "support"),
    [("row", "full"), ("sym", "full"), ("walk", "full"), ("gcn", "full"), ("row", "edges"), ("gcn", "edges")],
)
def test_joining_changes_nothing_that_is_known(normalization, support):
    torch.manual_seed(0)
    model = CaGAT(5, 4, 2, 3, heads=2, xi=0.1, normalization=normalization, support=support).eval()
    edges = Edges(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))
    x, new = torch.randn(4, 5), torch.randn(2, 5)
    neighbours = torch.tensor([[0, 1], [1, 2]])
    joined = edges.joined_to(neighbours, 4)
    with torch.no_grad():
        known, together = model(x, *edges), model(torch.cat([x, new]), *joined)
        alone = model(torch.cat([x, new[1:]]), *edges.joined_to(neighbours[1:], 4))
        elsewhere = model(torch.cat([x, new[1:]]), *edges.joined_to(torch.tensor([[0, 3]]), 4))
        plain = model(torch.cat([x, new]), joined.edge_index)
    torch.testing.assert_close(together[:4], known)
    torch.testing.assert_close(together[5], alone[4])
    assert (alone[4] - elsewhere[4]).abs().max() > 1e-4  # It does look at its neighbours.
    if support == "full" and normalization != "walk":
        assert (plain[:4] - known).abs().max() > 1e-4  # Edges that take part in the diffusion would not do.


def test_given_weights_stay():
    joined = Edges(torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 2.0])).joined_to(torch.tensor([[1]]), 2)
    assert joined.edge_index.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert joined.weight.tolist() == [2, 2, 0]
