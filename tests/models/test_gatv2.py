import torch
from torch.testing import assert_close
from torch_geometric.nn import GATv2Conv

from cagat.models import GATv2


def test_is_two_of_pygs_layers():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40))
    model = GATv2(5, 4, 3, heads=2).eval()
    first, second = GATv2Conv(5, 4, heads=2).eval(), GATv2Conv(8, 3, concat=False).eval()
    first.load_state_dict(model.conv1.state_dict())
    second.load_state_dict(model.conv2.state_dict())
    hidden = torch.nn.functional.elu(first(x, edge_index))
    assert_close(model.embed(x, edge_index), hidden)
    assert_close(model(x, edge_index), second(hidden, edge_index))
    assert model.conv1.dropout == model.conv2.dropout == 0.6
