import numpy as np
import pytest

from cagat.labelling.gain import Seen, gain_of_more


def estimates(rate, counts, noise=0.0, seed=0):
    """Estimates in which node v is right with probability rate(v, labels), and errors of an estimate go together."""
    random = np.random.default_rng(seed)
    found = []
    for labels in counts:
        shift = noise * random.standard_normal()
        right = random.random(labels) < np.clip(rate(np.arange(labels), labels) + shift, 0, 1)
        found.append(Seen(labels, np.arange(labels), right))
    return found


COUNTS = range(20, 81, 2)


def test_what_twice_as_many_labels_gain_is_found():
    gains = [
        gain_of_more(80, estimates(lambda node, n: 0.4 + 0.1 * np.log2(n / 20) + 0 * node, COUNTS, seed=seed))
        for seed in range(20)
    ]
    told = [one for one in gains if one is not None]
    assert len(told) >= 15
    per_doubling = [one.share / np.log2(1 + one.labels / 80) for one in told]
    assert np.mean(per_doubling) == pytest.approx(0.1, abs=0.03)
    for one in told:
        assert 0 < one.low <= one.share <= one.high
        assert one.share >= 0.01
        assert one.labels <= 80


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_nothing_is_said_where_nothing_is_gained(noise):
    # Later nodes are easier, so that the curve rises, but no node is right more often with more labels.
    told = [
        gain_of_more(80, estimates(lambda node, n: 0.4 + node / 160, COUNTS, noise, seed)) is not None
        for seed in range(60)
    ]
    assert np.mean(told) <= 0.1


def test_too_little_to_say_anything():
    rising = estimates(lambda node, n: (n >= 70) + 0.0 * node, COUNTS)
    assert gain_of_more(80, rising) is not None
    assert gain_of_more(80, rising[:3]) is None
    assert gain_of_more(80, [one._replace(nodes=one.nodes[:10], right=one.right[:10]) for one in rising]) is None
    assert gain_of_more(80, [rising[0]] * 5) is None
    assert gain_of_more(80, [one._replace(right=one.right | True) for one in rising]) is None


def test_the_fewest_labels_that_gain_a_point_are_told():
    steep = gain_of_more(80, estimates(lambda node, n: (n >= 50) + 0.0 * node, COUNTS))
    assert steep.labels == 5
