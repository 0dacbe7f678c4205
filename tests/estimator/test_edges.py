import pytest
import torch

from cagat import CaGAT
from cagat.estimator.edges import Edges


@pytest.mark.parametrize(
    ("normalization", "support"),
    [("row", "full"), ("sym", "full"), ("walk", "full"), ("row", "edges"), ("sym", "edges")],
)
def test_joining_changes_nothing_that_is_known(normalization, support):
    torch.manual_seed(0)
    model = CaGAT(5, 4, 2, 3, heads=2, xi=0.1, normalization=normalization, support=support).eval()
    edges = Edges(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]))
    x, new = torch.randn(4, 5), torch.randn(2, 5)
    neighbours = torch.tensor([[0, 1], [1, 2]])
    joined = edges.joined_to(neighbours, 4)
    with torch.no_grad():
        known, together = model(x, *edges), model(torch.cat([x, new]), *joined)
        alone = model(torch.cat([x, new[1:]]), *edges.joined_to(neighbours[1:], 4))
        elsewhere = model(torch.cat([x, new[1:]]), *edges.joined_to(torch.tensor([[0, 3]]), 4))
        plain = model(torch.cat([x, new]), joined.edge_index)
    torch.testing.assert_close(together[:4], known)
    torch.testing.assert_close(together[5], alone[4])
    assert (alone[4] - elsewhere[4]).abs().max() > 1e-4  # It does look at its neighbours.
    if support == "full" and normalization != "walk":
        assert (plain[:4] - known).abs().max() > 1e-4  # Edges that take part in the diffusion would not do.


def test_given_weights_stay():
    joined = Edges(torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 2.0])).joined_to(torch.tensor([[1]]), 2)
    assert joined.edge_index.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert joined.weight.tolist() == [2, 2, 0]
