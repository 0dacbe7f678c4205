import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cagat.models import MLP, Labelled, LogReg
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


def problem(classes: int):
    torch.manual_seed(classes)
    x = torch.randn(60, 5, dtype=torch.float64)
    y = (x[:, :classes] + torch.randn(60, classes, dtype=torch.float64)).argmax(dim=1)
    return x, torch.empty(2, 0, dtype=torch.long), Labelled(torch.arange(10, 60), y[10:])


@pytest.mark.parametrize("weight_decay", [5e-4, 0.1])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_finds_the_minimum_of_the_penalised_loss(classes, weight_decay):
    x, edges, train = problem(classes)
    model = LogReg(5, classes, weight_decay).double()
    model.solve((x, edges), train)
    loss = F.cross_entropy(model(x, edges)[train.nodes], train.classes)
    penalty = 0.5 * weight_decay * model.lin.weight.square().sum()
    for gradient in torch.autograd.grad(loss + penalty, list(model.parameters())):
        assert gradient.abs().max() < 2e-4


def test_regression_on_sparse_features_gives_the_same():
    x, edges, train = problem(3)
    x = (x * (x > 0)).float()
    dense, sparse = LogReg(5, 3), LogReg(5, 3)
    dense.solve((x, edges), train)
    sparse.solve((x.to_sparse_csr(), edges), train)
    assert_close(sparse(x, edges), dense(x, edges), rtol=1e-3, atol=1e-3)


def test_no_penalty_is_possible():
    x, edges, train = problem(3)
    model = LogReg(5, 3, weight_decay=0.0).double()
    model.solve((x, edges), train)
    loss = F.cross_entropy(model(x, edges)[train.nodes], train.classes)
    assert max(gradient.abs().max() for gradient in torch.autograd.grad(loss, list(model.parameters()))) < 1e-3


@pytest.mark.parametrize("present", [[1], [0, 3], [0, 2, 3]])
def test_classes_without_training_nodes_are_never_found(present):
    x, edges, train = problem(5)
    classes = torch.tensor(present)[train.classes % len(present)]
    model = LogReg(5, 5).double()
    model.solve((x, edges), Labelled(train.nodes, classes))
    logits = model(x, edges)
    assert logits.isfinite().all()
    assert set(logits.argmax(dim=1).tolist()) == set(present)
    absent = [label for label in range(5) if label not in present]
    assert logits.softmax(dim=1)[:, absent].max() < 1e-6
