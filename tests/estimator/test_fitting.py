import numpy as np
import pytest

from cagat.estimator.fitting import hold_out


@pytest.mark.parametrize(
    ("sizes", "fraction", "held"),
    [
        ([10, 20], 0.2, [2, 4]),
        ([10, 20], 0.0, [0, 0]),
        ([1, 20], 0.2, [0, 4]),  # A class keeps its only node.
        ([2, 2], 0.2, [0, 0]),
        ([2, 3], 0.2, [0, 0]),  # One node for two classes tells nothing.
        ([2, 2], 0.9, [1, 1]),
    ],
)
def test_every_class_gives_its_share(sizes, fraction, held):
    numbers = np.repeat([*range(len(sizes)), -1], [*sizes, 5])
    train, val = hold_out(numbers, fraction, np.random.RandomState(0))
    assert np.bincount(numbers[val], minlength=len(sizes)).tolist() == held
    assert sorted([*train, *val]) == np.flatnonzero(numbers >= 0).tolist()


def test_the_seed_decides_who():
    numbers = np.repeat([0, 1], 20)
    first, same, other = (hold_out(numbers, 0.3, np.random.RandomState(seed))[1].tolist() for seed in (0, 0, 1))
    assert first == same != other
