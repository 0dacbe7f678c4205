import torch
from torch.testing import assert_close

from cagat.models import GAT, CaGAT


def test_is_cagat_without_context():
    torch.manual_seed(0)
    gat, cagat = GAT(6, 3, 5, heads=2).eval(), CaGAT(6, 3, 2, 5, heads=2, alpha=0, xi=0, lam=1).eval()
    for ours, theirs in zip(cagat.convs, (gat.conv1, gat.conv2), strict=True):
        ours.load_state_dict(theirs.state_dict())
    x, edge_index = torch.randn(40, 6), torch.randint(0, 40, (2, 120)).unique(dim=1)
    assert_close(cagat(x, edge_index), gat(x, edge_index))
