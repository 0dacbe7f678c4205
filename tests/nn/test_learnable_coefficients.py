import pytest
import torch
from torch.testing import assert_close

from cagat import CaGATConv
from cagat.nn.cagat_conv import LearnableCoefficients


def test_start_at_the_given_values_for_each_head():
    coefficients = LearnableCoefficients(0.7, 0.9, 0.01, heads=3, learn=True)
    for value, expected in zip(coefficients(), (0.7, 0.9, 0.01), strict=True):
        assert_close(value, torch.full((3,), expected))


def test_are_plain_numbers_unless_learnt():
    coefficients = LearnableCoefficients(0.7, 0.9, 0.01, heads=3)
    assert coefficients() == (0.7, 0.9, 0.01)
    assert not list(coefficients.parameters())


@pytest.mark.parametrize("offset", [-1000.0, -3.0, 3.0, 1000.0])
def test_stay_in_their_ranges_whatever_is_learnt(offset):
    coefficients = LearnableCoefficients(0.4, 0.3, 1e-3, heads=2, learn=True)
    for parameter in coefficients.parameters():
        torch.nn.init.constant_(parameter, offset)
    alpha, lam, xi = coefficients()
    assert ((alpha >= 0) & (alpha <= 1) & (lam >= 0) & (lam <= 1)).all()
    assert ((xi >= 0) & xi.isfinite()).all()


def test_one_at_the_end_of_its_range_stays_there():
    coefficients = LearnableCoefficients(0.5, 1, 0, heads=3, learn=True)
    assert [name for name, _ in coefficients.named_parameters()] == ["alpha_offset"]
    assert coefficients()[1:] == (1, 0)


def test_reset_brings_the_given_values_back():
    conv = CaGATConv(5, 4, 3, learn_coefficients=True)
    torch.nn.init.ones_(conv.coefficients.alpha_offset)
    conv.reset_parameters()
    assert_close(conv.coefficients().alpha, torch.full((3,), 0.4))


def test_a_layer_learns_them_for_each_head():
    torch.manual_seed(0)
    conv = CaGATConv(5, 4, 2, learn_coefficients=True)
    x, edge_index = torch.randn(30, 5), torch.randint(0, 30, (2, 90))
    conv(x, edge_index).square().sum().backward()
    for parameter in conv.coefficients.parameters():
        assert parameter.grad.unique().numel() == 2
