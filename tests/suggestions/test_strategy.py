import numpy as np
import pytest
from tests.suggestions.two_stars import NOBODY, two_stars

from cagat.suggestions.strategy import Question, lazy_greedy


def covered_by(sets: list[set[int]], budget: int) -> tuple[list[int], list[float], int]:
    """Greedy choice of sets that cover most, and how many gains were computed for it."""
    covered, asked = set(), 0

    def gains(some):
        nonlocal asked
        asked += len(some)
        return np.array([float(len(sets[one] - covered)) for one in some])

    found = list(lazy_greedy(len(sets), budget, gains, lambda one: covered.update(sets[one])))
    return [one for one, _ in found], [gain for _, gain in found], asked


def test_each_gains_most_after_those_before_it():
    order, gains, _ = covered_by([{2, 3}, {0, 1, 2}, {0, 1}, {4, 5}], 4)
    assert (order, gains) == ([1, 3, 0, 2], [3, 2, 1, 0])


def test_lazily_is_as_greedily_with_fewer_gains():
    random = np.random.RandomState(0)
    sets = [set(random.choice(5000, random.randint(1, 60), replace=False).tolist()) for _ in range(1000)]
    order, gains, asked = covered_by(sets, 30)
    covered: set[int] = set()
    for one, gain in zip(order, gains, strict=True):
        assert gain == len(sets[one] - covered) == max(len(other - covered) for other in sets)
        covered |= sets[one]
    assert len(set(order)) == 30
    assert asked < 15 * 1000


def test_more_than_there_is():
    assert sorted(covered_by([{0}, {1}], 5)[0]) == [0, 1]


def test_uncertainty_is_entropy():
    question = Question(two_stars(), NOBODY, 1, probabilities=np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]))
    assert question.uncertainty == pytest.approx([1, 0, 0.811278])
    assert Question(two_stars(), np.array([0, 3]), 1).unlabelled.tolist() == [1, 2, 4, 5, 6, 7]
