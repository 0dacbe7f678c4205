import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close
from torch_geometric.nn import GCN2Conv

from cagat import CSRGraph
from cagat.models import GCNII
from cagat.models.gcnii import InitialResidualConvolution


@pytest.fixture
def graph():
    torch.manual_seed(0)
    edges = torch.randint(0, 30, (2, 90)).unique(dim=1)  # Directed, some self-loops among them.
    return torch.randn(30, 6), edges, torch.rand(edges.size(1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "theta", "layer"), [(0.1, 0.5, 1), (0.0, 0.5, 3), (1.0, 1.5, 64), (0.3, 0.0, 2)])
def test_is_pygs_layer(graph, alpha, theta, layer, weighted):
    x, edge_index, weight = graph
    weight = weight if weighted else None
    ours, theirs = InitialResidualConvolution(6, alpha, theta, layer), GCN2Conv(6, alpha, theta, layer)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for conv in (ours, theirs):
        inputs = [x.clone().requires_grad_(), x.flip(0).requires_grad_()]
        y = conv(*inputs, edge_index, weight)
        found.append([y, *torch.autograd.grad(y.square().sum(), [*inputs, conv.weight1])])
    assert_close(*found, rtol=1e-4, atol=1e-5)


def test_takes_a_prepared_graph(graph):
    x, edge_index, _ = graph
    conv = InitialResidualConvolution(6, 0.1, 0.5, 1)
    assert_close(conv(x, x, CSRGraph.from_edge_index(edge_index, 30)), conv(x, x, edge_index))


@pytest.mark.parametrize("layers", [1, 5])
def test_is_pygs_layers_stacked(graph, layers):
    x, edge_index, weight = graph
    model = GCNII(6, 8, 3, layers=layers, alpha=0.2, theta=0.7).eval()
    torch.nn.init.normal_(model.lin1.bias)
    start = hidden = F.relu(F.linear(x, model.lin1.weight, model.lin1.bias))
    for number, ours in enumerate(model.convs, start=1):
        conv = GCN2Conv(8, 0.2, 0.7, number)
        conv.load_state_dict(ours.state_dict())
        hidden = F.relu(conv(hidden, start, edge_index, weight))
    assert_close(model.embed(x, edge_index, weight), hidden)
    assert_close(model(x, edge_index, weight), F.linear(hidden, model.lin2.weight, model.lin2.bias))
    assert_close(model(x.to_sparse_csr(), edge_index, weight), model(x, edge_index, weight))


def test_is_the_formula_of_the_paper():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40)).unique(dim=1)
    model = GCNII(5, 4, 3, layers=3, alpha=0.1, theta=0.5).eval()
    A = torch.zeros(20, 20)
    A[edge_index[1], edge_index[0]] = 1
    A.fill_diagonal_(1)
    scale = A.sum(dim=1).rsqrt()
    P = scale[:, None] * A * scale
    start = hidden = (x @ model.lin1.weight.t()).relu()
    for number, conv in enumerate(model.convs, start=1):
        beta = math.log(0.5 / number + 1)
        hidden = (0.9 * P @ hidden + 0.1 * start) @ ((1 - beta) * torch.eye(4) + beta * conv.weight1)
        hidden = hidden.relu()
    assert_close(model.embed(x, edge_index), hidden)


def test_every_layer_drops_its_input(graph):
    """With a dropout of 1 every layer gets zeros, so only the first representation, made of its bias, is left."""
    x, edge_index, _ = graph
    model = GCNII(6, 8, 3, layers=2, alpha=0.25, theta=0.0, dropout=1.0).train()
    torch.nn.init.ones_(model.lin1.bias)
    torch.nn.init.ones_(model.lin2.bias)
    assert_close(model.embed(x, edge_index), torch.full((30, 8), 0.25))
    assert_close(model(x, edge_index), torch.ones(30, 3))


def test_gradients():
    torch.manual_seed(0)
    edges = torch.randint(0, 6, (2, 12)).unique(dim=1)
    prepared = CSRGraph.from_edge_index(edges, 6, dtype=torch.float64)
    conv = InitialResidualConvolution(3, 0.2, 0.5, 2).double()
    weight = conv.weight1.detach().requires_grad_()
    x, x_0 = torch.randn(2, 6, 3, dtype=torch.float64).unbind()

    def convolved(x, x_0, weight):
        return torch.func.functional_call(conv, {"weight1": weight}, (x, x_0, prepared))

    assert torch.autograd.gradcheck(convolved, (x.requires_grad_(), x_0.requires_grad_(), weight))


def test_two_weight_decays():
    model = GCNII(5, 4, 3, layers=7, dense_weight_decay=0.2)
    convolutions, dense = model.parameter_groups(0.1)
    assert (convolutions["weight_decay"], dense["weight_decay"]) == (0.1, 0.2)
    assert [weight.shape for weight in convolutions["params"]] == 7 * [(4, 4)]
    assert len(dense["params"]) == 4
    assert len(list(model.parameters())) == 11
