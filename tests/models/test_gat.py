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


def test_biases_decay_if_they_should():
    model = GAT(6, 3, 5)
    (everything,) = model.parameter_groups(0.1)
    assert len(everything["params"]) == len(list(model.parameters()))
    decaying, biases = GAT(6, 3, 5, decay_biases=False).parameter_groups(0.1)
    assert (decaying["weight_decay"], biases["weight_decay"]) == (0.1, 0)
    assert len(decaying["params"]) == 6  # Of each layer the weights and both attention vectors.
    assert all(bias.dim() == 1 for bias in biases["params"])
    assert len(biases["params"]) == 2
