import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cagat.models import Labelled, LogReg


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


def test_sparse_features_give_the_same():
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
