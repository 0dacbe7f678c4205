import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from cagat.models import DGI, Labelled


@pytest.fixture
def problem():
    torch.manual_seed(0)
    inputs = (torch.randn(40, 5), torch.randint(0, 40, (2, 100)).unique(dim=1))
    return inputs, Labelled(torch.arange(20), torch.arange(20) % 3)


def test_the_encoder_is_a_graph_convolution(problem):
    inputs, _ = problem
    model, conv = DGI(5, 4, 3), GCNConv(5, 4)
    conv.load_state_dict({"bias": model.infomax.encoder.bias, "lin.weight": model.lin.weight})
    expected = torch.nn.functional.prelu(conv(*inputs), model.infomax.encoder.activation.weight)
    assert_close(model.embed(*inputs), expected)


def test_the_slope_is_learnt_as_in_torch():
    torch.manual_seed(0)
    h = torch.randn(30, 4, dtype=torch.float64, requires_grad=True)
    ours, theirs = DGI(5, 4, 3).infomax.encoder.activation.double(), torch.nn.PReLU().double()
    assert_close(ours(h), theirs(h))
    torch.autograd.gradcheck(ours, h)
    gradients = [torch.autograd.grad(layer(h).square().sum(), layer.weight) for layer in (ours, theirs)]
    assert_close(*gradients)


def test_the_loss_compares_with_shuffled_rows(problem):
    inputs, train = problem
    model = DGI(5, 4, 3)
    torch.manual_seed(7)
    (loss,) = model.losses(inputs, train)
    torch.manual_seed(7)
    shuffled = inputs[0][torch.randperm(40)]
    H, negative = model.embed(*inputs), model.embed(shuffled, inputs[1])
    scores = [nodes @ model.infomax.weight @ H.mean(dim=0).sigmoid() for nodes in (H, negative)]
    logs = torch.nn.functional.logsigmoid
    assert_close(loss, -(logs(scores[0]).mean() + logs(-scores[1]).mean()))
    assert_close(model.stopping_loss(inputs, torch.empty(0), train), loss.detach())


def test_training_looks_at_no_label(problem):
    inputs, train = problem
    model = DGI(5, 4, 3)
    found = []
    for classes in (train.classes, 2 - train.classes):
        torch.manual_seed(7)
        found.extend(model.losses(inputs, Labelled(train.nodes, classes)))
    assert torch.equal(*found)


def test_solve_fits_the_classifier_and_leaves_the_encoder(problem):
    inputs, train = problem
    model = DGI(5, 30, 3)
    before = model.embed(*inputs).detach()
    model.solve(inputs, train)
    assert torch.equal(model.embed(*inputs), before)
    assert (model(*inputs)[train.nodes].argmax(dim=1) == train.classes).double().mean() > 0.7


def test_the_optimizer_is_not_given_the_classifier(problem):
    model = DGI(5, 4, 3)
    (group,) = model.parameter_groups(0.1)
    assert {id(parameter) for parameter in group["params"]} == {
        id(parameter) for name, parameter in model.named_parameters() if not name.startswith("classifier")
    }
