"""Synthetic graphs: what was asked for, and the same for ever."""

import hashlib

import numpy as np
import pytest

from cagat.data.synthetic import Synthetic
from cagat.data.tidy import tidy


def test_golden_values():
    graph = Synthetic(nodes=50, degree=4, classes=3, features=9, seed=1).graph()
    assert graph.labels[:10].tolist() == [0, 2, 1, 2, 2, 0, 0, 2, 1, 1]
    assert hashlib.sha256(graph.edge_index.astype("<i8").tobytes()).hexdigest()[:16] == "0e28b88fc697a775"
    assert hashlib.sha256(graph.features.toarray().astype("<f4").tobytes()).hexdigest()[:16] == "6d4fc90f17493538"


@pytest.mark.parametrize("seed", range(3))
def test_sizes_are_those_asked_for(seed):
    asked = Synthetic(nodes=3000, degree=12, classes=5, features=40, seed=seed)
    graph, oddities = tidy(asked.graph())
    assert graph.num_nodes == 3000
    assert graph.edge_index.shape[1] == 3000 * 12
    assert graph.features.shape == (3000, 40)
    assert np.bincount(graph.labels).tolist() == [600] * 5
    assert (oddities.self_loops, oddities.duplicate_edges, oddities.without_features) == (0, 0, 0)


def test_crowded_graphs_are_filled_too():
    graph = Synthetic(nodes=200, degree=49, classes=50, features=50).graph()
    assert graph.edge_index.shape[1] == 200 * 49 // 2


def test_classes_show_in_edges_and_features():
    graph, _ = tidy(Synthetic(nodes=4000, degree=10, classes=4, features=40).graph())
    source, target = graph.edge_index
    assert 0.8 < (graph.labels[source] == graph.labels[target]).mean() < 0.9
    own = np.array([graph.features[graph.labels == c][:, c::4].mean() for c in range(4)])
    other = np.array([graph.features[graph.labels != c][:, c::4].mean() for c in range(4)])
    assert (own > 2 * other).all()


def test_degrees_have_a_heavy_tail():
    graph, _ = tidy(Synthetic(nodes=4000, degree=10).graph())
    degrees = np.bincount(graph.edge_index[0])
    assert degrees.max() > 8 * degrees.mean()


def test_seeds_differ_and_repeat():
    first, again, other = (Synthetic(seed=seed).graph() for seed in (0, 0, 1))
    assert np.array_equal(first.edge_index, again.edge_index)
    assert not np.array_equal(first.edge_index, other.edge_index)


@pytest.mark.parametrize("words", ["synthetic", "synthetic:nodes=70", "synthetic:seed=3,classes=2"])
def test_words_are_read_back(words):
    asked = Synthetic.parse(words)
    assert Synthetic.parse(asked.words) == asked
