import numpy as np
import pytest
import torch
from tests.suggestions.two_stars import both_ways, hub_rank, two_stars

from cagat.data.converters import sparse_tensor
from cagat.suggestions.node_space import WIDTH, NodeSpace, squared_distances, unit_rows


def test_pagerank_of_stars_of_a_path_and_of_a_node_without_a_way_out():
    rank = two_stars().pagerank
    assert rank[0] == pytest.approx(hub_rank(4), abs=1e-5)
    assert rank[5] == pytest.approx(hub_rank(2), abs=1e-5)
    assert rank[1] == pytest.approx(0.15 + 0.85 * hub_rank(4) / 4, abs=1e-5)
    # 0 -> 1: x0 = 0.15 + 0.85 x1 / 2, and both sum to 2.
    one_way = NodeSpace(torch.eye(2), torch.tensor([[0], [1]])).pagerank
    assert one_way == pytest.approx([2 - 1.85 / 1.425, 1.85 / 1.425], abs=1e-5)


def test_smoothed_features_of_two_neighbours():
    space = NodeSpace(torch.eye(2), both_ways([(0, 1)]))
    assert space.smoothed(1) == pytest.approx(np.full((2, 2), 0.5))
    assert space.smoothed(1, 0.5) == pytest.approx(np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert space.smoothed(0) is space.smoothed(0), "computed once"


def test_an_edge_weighs_as_much_as_it_says():
    space = NodeSpace(torch.eye(2), both_ways([(0, 1)]), torch.tensor([3.0, 3.0]))
    assert space.smoothed(1) == pytest.approx(np.array([[0.25, 0.75], [0.75, 0.25]]))


@pytest.mark.parametrize("width", [300, 1100])
def test_wide_features_are_reduced_and_keep_their_inner_products(width):
    random = np.random.RandomState(0)
    # Rows in a space of 20 dimensions: nothing is lost.
    rows = random.rand(200, 20) @ random.rand(20, width)
    x = torch.tensor(rows, dtype=torch.float32)
    edges = torch.empty(2, 0, dtype=torch.long)
    dense = NodeSpace(x, edges).features
    assert dense.shape == (200, WIDTH)
    unit = unit_rows(rows.astype(np.float32))
    assert (dense @ dense.T).numpy() == pytest.approx(unit @ unit.T, abs=1e-4)
    import scipy.sparse

    sparse = NodeSpace(sparse_tensor(scipy.sparse.csr_matrix(rows.astype(np.float32))), edges).features
    assert (sparse @ sparse.T).numpy() == pytest.approx(unit @ unit.T, abs=1e-4)


def test_neighbours_and_degrees():
    space = two_stars()
    assert space.neighbours(np.array([5, 1])).tolist() == [6, 7, 0]
    assert space.neighbours(np.array([], dtype=np.int64)).tolist() == []
    assert space.degree.tolist() == [4, 1, 1, 1, 1, 2, 1, 1]


def test_distances():
    a, b = np.array([[0, 0], [3, 4]], dtype=np.float32), np.array([[3, 4]], dtype=np.float32)
    assert squared_distances(a, b).tolist() == [[25], [0]]
    assert unit_rows(a).tolist() == [[0, 0], pytest.approx([0.6, 0.8])]
