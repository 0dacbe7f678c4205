import torch
from torch.testing import assert_close

from cagat.models import MLP


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
