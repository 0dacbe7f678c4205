"""Graphs made on the spot: what was asked for, and the same for ever."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cagat.data import load, summarize
from cagat.data.cleaning import clean
from cagat.data.synthetic import Noise, Synthetic
from cagat.errors import DatasetError


def test_golden_values_of_a_synthetic_graph():
    graph = Synthetic(nodes=50, degree=4, classes=3, features=9, seed=1).graph()
    assert graph.labels[:10].tolist() == [0, 2, 1, 2, 2, 0, 0, 2, 1, 1]
    assert hashlib.sha256(graph.edge_index.astype("<i8").tobytes()).hexdigest()[:16] == "0e28b88fc697a775"
    assert hashlib.sha256(graph.features.toarray().astype("<f4").tobytes()).hexdigest()[:16] == "6d4fc90f17493538"


@pytest.mark.parametrize("seed", range(3))
def test_sizes_are_those_asked_for(seed):
    asked = Synthetic(nodes=3000, degree=12, classes=5, features=40, seed=seed)
    graph, report = clean(asked.graph())
    assert graph.num_nodes == 3000
    assert graph.edge_index.shape[1] == 3000 * 12
    assert graph.features.shape == (3000, 40)
    assert np.bincount(graph.labels).tolist() == [600] * 5
    assert (report.self_loops, report.duplicate_edges, report.without_features) == (0, 0, 0)


def test_crowded_graphs_are_filled_too():
    graph = Synthetic(nodes=200, degree=49, classes=50, features=50).graph()
    assert graph.edge_index.shape[1] == 200 * 49 // 2


def test_classes_show_in_edges_and_features():
    graph, _ = clean(Synthetic(nodes=4000, degree=10, classes=4, features=40).graph())
    source, target = graph.edge_index
    assert 0.8 < (graph.labels[source] == graph.labels[target]).mean() < 0.9
    own = np.array([graph.features[graph.labels == c][:, c::4].mean() for c in range(4)])
    other = np.array([graph.features[graph.labels != c][:, c::4].mean() for c in range(4)])
    assert (own > 2 * other).all()


def test_degrees_have_a_heavy_tail():
    graph, _ = clean(Synthetic(nodes=4000, degree=10).graph())
    degrees = np.bincount(graph.edge_index[0])
    assert degrees.max() > 8 * degrees.mean()


def test_seeds_differ_and_repeat():
    first, again, other = (Synthetic(seed=seed).graph() for seed in (0, 0, 1))
    assert np.array_equal(first.edge_index, again.edge_index)
    assert not np.array_equal(first.edge_index, other.edge_index)


@pytest.mark.parametrize("name", ["synthetic", "synthetic:nodes=70", "synthetic:seed=3,classes=2"])
def test_names_are_read_back(name):
    asked = Synthetic.parse(name)
    assert Synthetic.parse(asked.name) == asked


def joined(graph) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in graph.edge_index.T if a < b}


@settings(max_examples=30)
@given(st.integers(0, 300), st.integers(0, 100), st.integers(0, 2**32 - 1))
def test_as_many_edges_as_asked_for_and_no_old_ones_among_the_added(added, dropped, seed):
    graph, _ = clean(Synthetic(nodes=80, degree=6, seed=seed).graph())
    before, changed = joined(graph), Noise(added, dropped, seed).applied(graph)
    after = joined(changed)
    assert len(before - after) == round(len(before) * dropped / 100)
    assert len(after - before) == round(len(before) * added / 100)
    source, target = changed.edge_index
    keys = source * 80 + target
    assert (np.diff(keys) > 0).all(), "sorted by source, then target, none twice"
    assert not (source == target).any()
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == set(
        zip(target.tolist(), source.tolist(), strict=True)
    )


def test_golden_values_of_noise():
    graph, _ = clean(Synthetic(nodes=50, degree=4, classes=3, features=9, seed=1).graph())
    changed = Noise(added=30, dropped=20, seed=5).applied(graph)
    assert hashlib.sha256(changed.edge_index.astype("<i8").tobytes()).hexdigest()[:16] == "0ff67e84ebca986a"


def test_a_published_graph_by_name():
    plain, noisy = load("cora"), load("cora:added=50,dropped=20")
    assert summarize(noisy)["edges"] == round(5069 * 0.8) + round(5069 * 0.5)
    assert noisy.num_nodes == plain.num_nodes
    assert (noisy.y == plain.y).all()
    assert (noisy.x == plain.x).all()
    assert noisy.name == "cora:added=50,dropped=20"
    assert noisy.source.endswith("then 20 % of its edges dropped and 50 % added at random")
    assert (load("cora:seed=1").edge_index == plain.edge_index).all(), "without noise there is nothing to draw"
    assert not np.array_equal(load("cora:added=50,dropped=20,seed=1").edge_index, noisy.edge_index)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("cora:add=50", r"'add=50' is not one of added=NUMBER, dropped=NUMBER, seed=NUMBER"),
        ("cora:added=-1", "'added=-1' is not one of"),
        ("cora:added=0.5", "'added=0.5' is not one of"),
        ("cora:", "'' is not one of"),
        ("cora:dropped=101", "dropped=101 must be at least 0 and at most 100"),
        ("cora:added=1001", "added=1001 must be at least 0 and at most 1000"),
        ("cora:added=5,added=6", "added is given twice"),
    ],
)
def test_what_cannot_be_had_is_said(name, wrong):
    with pytest.raises(DatasetError, match=wrong):
        load(name)


def test_a_graph_that_is_nearly_complete_cannot_be_joined_further():
    graph, _ = clean(Synthetic(nodes=40, degree=9).graph())
    with pytest.raises(DatasetError, match=r"added=1000 asks for 1800 edges more, but only 600 pairs"):
        Noise(added=1000).applied(graph)


def test_karate_is_zachary_s():
    data = load("karate")
    assert data.class_names == ["Mr. Hi", "Officer"]
    assert torch.equal(data.x, torch.eye(34))
    assert data.y[[0, 33]].tolist() == [0, 1]
    assert data.edge_index[1][data.edge_index[0] == 11].tolist() == [0]


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_rows_of_tables_are_joined_to_their_nearest(name):
    data = load(name)
    first = data.edge_index[1][data.edge_index[0] == 0]
    distance = (data.x - data.x[0]).norm(dim=1)
    nearest = distance.argsort()[1:9]
    assert set(nearest.tolist()) <= set(first.tolist())
