import numpy as np
import pytest
import torch
from tests.suggestions.two_stars import NOBODY, SIZE, ask, hub_rank

from cagat import data
from cagat.suggestions import coverage as module
from cagat.suggestions.coverage import coverage
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.strategy import Question


def test_the_centre_of_the_larger_star_then_that_of_the_other():
    first, second, third = coverage(ask(3))
    assert (first.node, second.node) == (0, 5)
    assert first.score == pytest.approx(5 / 8 * hub_rank(4) ** 0.25, rel=1e-4)
    assert second.score == pytest.approx(3 / 8 * hub_rank(2) ** 0.25, rel=1e-4)
    assert third.score == 0, "both stars are covered"
    reason = "stands for {} nodes that no labelled and no other suggested node is nearer to"
    assert [one.reason for one in coverage(ask(2))] == [reason.format(5), reason.format(3)]


def test_what_a_label_covers_need_not_be_covered_again():
    (only,) = coverage(ask(1, labelled=(3,)))
    assert only.node == 5
    assert only.reason.startswith("stands for 3 nodes")


def test_what_a_model_is_sure_of_need_not_be_covered():
    sure = np.tile([1.0, 0.0], (SIZE, 1))
    sure[5:] = 0.5
    first = coverage(ask(1, probabilities=sure))[0]
    assert first.node == 5
    assert first.reason.endswith("the model is unsure of 3 of them")


@pytest.fixture(scope="module")
def space():
    graph = data.load("synthetic:nodes=400,degree=6,classes=4,features=32,seed=0")
    return NodeSpace(graph.x, graph.edge_index)


def test_the_first_of_a_larger_budget_are_the_choice_of_a_smaller(space):
    nodes = [one.node for one in coverage(Question(space, NOBODY, 20))]
    assert nodes[:5] == [one.node for one in coverage(Question(space, NOBODY, 5))]
    # And to go on after labelling them is the same.
    rest = coverage(Question(space, np.sort(nodes[:5]), 15))
    assert [one.node for one in rest] == nodes[5:]


def test_a_sample_of_nodes_and_candidates_is_nearly_as_good(space, monkeypatch):
    z = module.unit_rows(space.smoothed(module.STEPS, module.RESTART))

    def covered(nodes):
        return np.maximum(z @ z[nodes].T, 0).max(axis=1).mean()

    best = covered([one.node for one in coverage(Question(space, NOBODY, 8))])
    monkeypatch.setattr(module, "MOST_CANDIDATES", 60)
    monkeypatch.setattr(module, "MOST_DEMANDS", 100)
    found = coverage(Question(space, NOBODY, 8, seed=1))
    assert covered([one.node for one in found]) > 0.95 * best
    counts = sum(int(one.reason.split()[2]) for one in found)
    assert counts == 400, "what a node stands for is counted among all nodes"


def test_a_node_without_features_and_edges_can_be_chosen():
    x = torch.zeros(3, 2)
    x[0, 0] = 1
    space = NodeSpace(x, torch.empty(2, 0, dtype=torch.long))
    assert sorted(one.node for one in coverage(Question(space, NOBODY, 3))) == [0, 1, 2]
