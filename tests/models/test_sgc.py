import torch
from torch.testing import assert_close
from torch_geometric.nn import SGConv

from cagat.models import SGC


def test_is_pygs_layer():
    torch.manual_seed(0)
    x, edge_index = torch.randn(20, 5), torch.randint(0, 20, (2, 40)).unique(dim=1)
    weight = torch.rand(edge_index.size(1))
    for K in (0, 1, 3):
        ours, theirs = SGC(5, 3, K), SGConv(5, 3, K)
        ours.load_state_dict({"lin.weight": theirs.lin.weight, "bias": theirs.lin.bias})
        assert_close(ours(x, edge_index, weight), theirs(x, edge_index, weight))
        assert_close(ours(x.to_sparse_csr(), edge_index), theirs(x, edge_index))
        assert_close(ours.embed(x, edge_index) @ ours.lin.weight.t() + ours.bias, theirs(x, edge_index))
