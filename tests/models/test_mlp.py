import pytest
import torch
from torch.testing import assert_close

from cagat.models import MLP
from cagat.models.mlp import FeatureLinear
from cagat.nn import SparseFeatures


def test_is_a_perceptron_that_sees_no_edges():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40))
    model = MLP(5, 4, 3).eval()
    torch.nn.init.normal_(model.lin1.bias)
    hidden = (x @ model.lin1.weight.t() + model.lin1.bias).relu()
    assert_close(model(x, edge_index), hidden @ model.lin2.weight.t() + model.lin2.bias)
    assert torch.equal(model(x, edge_index[:, :0]), model(x, edge_index))


def test_biases_do_not_decay():
    model = MLP(5, 4, 3)
    decaying, rest = model.parameter_groups(0.1)
    assert {id(parameter) for parameter in decaying["params"]} == {id(model.lin1.weight), id(model.lin2.weight)}
    assert {id(parameter) for parameter in rest["params"]} == {id(model.lin1.bias), id(model.lin2.bias)}
    assert (decaying["weight_decay"], rest["weight_decay"]) == (0.1, 0)


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(30, 8) * (torch.rand(30, 8) < 0.4)


@pytest.mark.parametrize("bias", [True, False])
def test_sparse_features_give_the_same(x, bias):
    layer = FeatureLinear(8, 3, dropout=0.5, bias=bias).eval()
    if bias:
        torch.nn.init.normal_(layer.bias)
    expected = x @ layer.weight.t() + (layer.bias if bias else 0)
    assert_close(layer(x), expected)
    assert_close(layer(x.to_sparse_csr()), expected)
    assert_close(layer(SparseFeatures.from_tensor(x.to_sparse_csr())), expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_dropout_is_on_the_input_in_training_only(sparse):
    layer = FeatureLinear(1000, 1000, dropout=0.25, bias=False)
    torch.nn.init.eye_(layer.weight)
    x = torch.ones(20, 1000)
    y = layer(x.to_sparse_csr() if sparse else x)
    assert y.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (y == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    assert_close(layer.eval()(x), x)


def test_starts_with_glorot_weights_and_no_bias():
    layer = FeatureLinear(600, 400)
    assert layer.weight.abs().max().item() == pytest.approx((6 / 1000) ** 0.5, rel=0.01)
    assert not layer.bias.any()
