import pytest
import torch

from cagat.training.calibration import expected_calibration_error, fit_temperature, interval, reliability


def drawn(nodes: int, temperature: float, classes: int = 4, seed: int = 0):
    """Logits that are right once they are divided by the temperature, and classes drawn accordingly."""
    generator = torch.Generator().manual_seed(seed)
    right = 2 * torch.randn(nodes, classes, generator=generator)
    return temperature * right, torch.multinomial(right.softmax(dim=1), 1, generator=generator).flatten()


@pytest.mark.parametrize("temperature", [0.4, 2.5])
def test_the_temperature_is_found(temperature):
    logits, classes = drawn(5000, temperature)
    assert fit_temperature(logits, classes) == pytest.approx(temperature, rel=0.06)
    before = expected_calibration_error(logits.softmax(dim=1), classes)
    after = expected_calibration_error((logits / fit_temperature(logits, classes)).softmax(dim=1), classes)
    assert before > 0.08
    assert after < 0.02


def test_few_nodes_change_nothing():
    logits, classes = drawn(1, 3.0)
    assert fit_temperature(logits, classes) == pytest.approx(1, abs=0.3)
    assert fit_temperature(logits[:0], classes[:0]) == 1.0
    # Probabilities that are right already stay nearly so, whatever chance says of thirty nodes.
    for seed in range(10):
        logits, classes = drawn(30, 1.0, seed=seed)
        assert 0.5 < fit_temperature(logits, classes) < 2


def test_calibration_error_by_hand():
    probabilities = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.0, 1.0]])
    classes = torch.tensor([0, 1, 1, 1])
    # Two nodes of confidence 0.9, half of them right; one of 0.6 and one of 1.0, both right.
    assert expected_calibration_error(probabilities, classes) == pytest.approx((2 * 0.4 + 0.4 + 0) / 4)
    assert [one.nodes for one in reliability(probabilities, classes)] == [1, 2, 1]


def test_the_interval_is_wilsons():
    assert interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert interval(10, 10)[1] == 1


def test_nodes_weigh_as_much_as_their_class_has_members():
    logits, classes = drawn(4000, 1.0)
    # In one class the logits are twice too large; in a graph that has few of its nodes, that matters little.
    logits[classes == 0] *= 2
    even = fit_temperature(logits, classes)
    rare = fit_temperature(logits, classes, torch.tensor([0.01, 0.33, 0.33, 0.33]))
    assert abs(rare - 1) < abs(even - 1)


def test_a_model_that_prefers_one_class_is_not_thought_more_accurate_than_it_is():
    generator = torch.Generator().manual_seed(0)
    classes = torch.randint(2, (4000,), generator=generator)
    # Nearly all nodes get the second class, with a confidence that is right: about one half.
    logits = torch.stack([torch.zeros(4000), 0.1 + 0.06 * torch.randn(4000, generator=generator)], dim=1)
    assert fit_temperature(logits, classes) > 0.7
    after = (logits.double() / fit_temperature(logits, classes)).softmax(dim=1)
    assert expected_calibration_error(after, classes) < 0.03


def test_the_confidence_is_that_of_the_predicted_class_not_the_likelihood_of_all():
    # Wrong predictions spread over classes that are equally unlikely, so that the likelihood asks for other values.
    logits, classes = drawn(3000, 1.0, classes=6)
    wrong = logits.argmax(dim=1) != classes
    classes[wrong] = logits[wrong].argmin(dim=1)
    confidence = logits.double().softmax(dim=1).amax(dim=1).mean()
    assert confidence == pytest.approx((~wrong).double().mean().item(), abs=0.02)
    assert fit_temperature(logits, classes) == pytest.approx(1, abs=0.1)
