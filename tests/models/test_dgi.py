import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import DeepGraphInfomax, GCNConv

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


@pytest.mark.parametrize("hidden", [4, 64])
def test_the_loss_compares_with_shuffled_rows(problem, hidden):
    inputs, train = problem
    model = DGI(5, hidden, 3)
    torch.manual_seed(7)
    (loss,) = model.losses(inputs, train)
    torch.manual_seed(7)
    shuffled = inputs[0][torch.randperm(40)]
    H, negative = model.embed(*inputs), model.embed(shuffled, inputs[1])
    scores = [nodes @ model.infomax.weight @ H.mean(dim=0).sigmoid() for nodes in (H, negative)]
    logs = torch.nn.functional.logsigmoid
    assert_close(loss, -(logs(scores[0]).mean() + logs(-scores[1]).mean()))
    assert_close(model.stopping_loss(inputs, torch.empty(0), train), loss.detach())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("hidden", "dtype"), [(4, torch.float32), (64, torch.float64), (128, torch.float32)])
def test_an_epoch_is_that_of_torch_and_pyg(problem, hidden, dtype, sparse):
    (x, edge_index), train = problem
    x = x.to(dtype)
    model = DGI(5, hidden, 3).to(dtype)
    conv, activation = GCNConv(5, hidden).to(dtype), torch.nn.PReLU().to(dtype)
    theirs = DeepGraphInfomax(
        hidden,
        lambda x: activation(conv(x, edge_index)),
        lambda H, _: H.mean(dim=0).sigmoid(),
        lambda x: x[torch.randperm(len(x))],
    ).to(dtype)
    pairs = [
        (model.lin.weight, conv.lin.weight),
        (model.infomax.encoder.bias, conv.bias),
        (model.infomax.encoder.activation.weight, activation.weight),
        (model.infomax.weight, theirs.weight),
    ]
    with torch.no_grad():
        model.infomax.encoder.bias.normal_()
        for ours, other in pairs:
            other.copy_(ours)
    torch.manual_seed(7)
    (loss,) = model.losses((x.to_sparse() if sparse else x, edge_index), train)
    after = torch.rand(1)
    torch.manual_seed(7)
    expected = theirs.loss(*theirs(x))
    assert torch.equal(after, torch.rand(1))
    assert_close(loss, expected)
    gradients = torch.autograd.grad(loss, [ours for ours, _ in pairs])
    assert_close(gradients, torch.autograd.grad(expected, [other for _, other in pairs]))


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
