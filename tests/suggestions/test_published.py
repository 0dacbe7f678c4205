import math

import numpy as np
import pytest
import torch
from tests.suggestions.two_stars import NOBODY, ask, both_ways, hub_rank

from cagat.suggestions import published
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.strategy import Question

SEED = 8
REASON = "density above 0 % of nodes, centrality above 0 % of nodes, uncertainty above 80 % of nodes"


def test_random_is_a_permutation_by_its_seed():
    nodes = [one.node for one in published.random(ask(6, labelled=(0, 5), seed=3))]
    assert sorted(nodes) == [1, 2, 3, 4, 6, 7]
    assert nodes != [one.node for one in published.random(ask(6, labelled=(0, 5), seed=4))]


def test_pagerank_takes_centres_then_the_leaves_of_the_smaller_star():
    found = published.pagerank(ask(4))
    assert [one.node for one in found] == [0, 5, 6, 7]
    assert found[0].score == pytest.approx(hub_rank(4), abs=1e-5)
    assert found[0].reason == "its PageRank is 2.4 times the average"


def points(*degrees: float) -> NodeSpace:
    """Nodes without edges on the unit circle."""
    angles = [math.radians(angle) for angle in degrees]
    x = torch.tensor([[math.cos(angle), math.sin(angle)] for angle in angles])
    return NodeSpace(x, torch.empty(2, 0, dtype=torch.long))


def test_featprop_takes_the_middle_of_each_cluster_the_larger_first():
    space = points(90, 0, 10, 20)
    found = published.featprop(Question(space, NOBODY, 2))
    assert [one.node for one in found] == [2, 0]
    assert found[0].reason == "nearest to the centre of 3 nodes with similar surroundings"
    assert [one.node for one in published.featprop(Question(space, np.array([2]), 1))] == [3], "centre at 30 degrees"


def cliques() -> NodeSpace:
    """Nodes 0 to 3 of feature 0 and nodes 4 and 5 of feature 1, all alike within: smoothing changes nothing."""
    x = torch.zeros(6, 2)
    x[:4, 0] = x[4:, 1] = 1
    return NodeSpace(x, both_ways([(a, b) for a in range(4) for b in range(a)] + [(4, 5)]))


def test_age_is_central_at_first():
    assert [one.node for one in published.age(ask(4))] == [0, 5, 6, 7]


def test_age_weighs_percentiles():
    unsure = np.tile([1.0, 0.0], (6, 1))
    unsure[5] = 0.5
    share = np.random.RandomState(SEED).beta(1, 1.005 - 0.995)
    assert share < 0.999
    # No node is more central or denser than another; of the five that are left, four are surer than node 5.
    question = Question(cliques(), np.array([0]), 1, SEED, unsure)
    assert published.age(question) == [(5, pytest.approx((1 - share) * 4 / 5 / 2), REASON)]


def test_age_prefers_the_middle_of_a_cluster_where_all_are_equally_central():
    # Two hundred labels, so that density has its share.
    space = points(0, 10, 20, 100, 110, 120, *[10] * 100, *[110] * 100)
    found = published.age(Question(space, np.arange(6, 206), 2, num_classes=2))
    assert sorted(one.node for one in found) == [1, 4]


def test_grain_counts_what_is_reached_and_what_is_near():
    found = published.grain(Question(cliques(), NOBODY, 3))
    # Every node of a clique reaches all of it, is no way from its nodes, and as far from the others as can be.
    assert [one.node for one in found[:2]] == [0, 4]
    scores = [one.score for one in found]
    assert scores == [pytest.approx(2 * 4 / 6), pytest.approx(2 * 2 / 6), pytest.approx(0, abs=1e-6)]
    assert found[0].reason == "reaches 4 nodes in two steps that nothing chosen before it reaches"
    assert published.grain(Question(cliques(), np.array([2]), 1))[0].node == 4
    # On stars distances count as well, but no leaf reaches more nodes than the centre is near to.
    assert {one.node for one in published.grain(ask(2))} & {5, 6, 7}


def test_large_graphs_have_fewer_candidates(monkeypatch):
    monkeypatch.setattr(published, "_MANY", 4)
    monkeypatch.setattr(published, "_SAMPLE", 6)
    monkeypatch.setattr(published, "_CANDIDATES", 2)
    assert [one.node for one in published.grain(ask(1))] == [0]
    assert len(published.featprop(ask(2))) == 2
