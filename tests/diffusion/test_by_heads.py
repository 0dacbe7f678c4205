import pytest
import torch
from torch.testing import assert_close

from cagat.diffusion import Coefficients, Diffusion, diffuse
from cagat.diffusion.by_heads import features_by_heads, heads_at_a_time
from cagat.kernels import CSRGraph, edge_softmax


@pytest.mark.parametrize(
    "reading",
    [{"feedback": True}, {"affinity": "full"}, {"support": "edges"}, {}],
    ids=str,
)
@pytest.mark.parametrize("learnt", [False, True])
def test_groups_of_heads_are_all_heads(monkeypatch, reading, learnt):
    torch.manual_seed(0)
    graph = CSRGraph.from_edge_index(torch.randint(0, 12, (2, 40)), 12, dtype=torch.float64)
    Z = torch.randn(12, 5, 3, dtype=torch.float64)
    G = edge_softmax(graph.pattern, Z[..., 0].contiguous(), Z[..., 1].contiguous())
    xi = torch.rand(5, dtype=torch.float64) if learnt else 0.1
    coefficients = Coefficients(0.4, 0.3, xi)
    whole = diffuse(Z, G, graph, coefficients, Diffusion(2, 1, **reading)).H
    # Room for two of the five heads.
    monkeypatch.setattr("cagat.diffusion.by_heads.MOST_BYTES", 2 * 2 * 3 * 12 * 3 * 8)
    assert heads_at_a_time(Z, 2) == 2
    with torch.no_grad():
        assert_close(features_by_heads(Z, G, graph, coefficients, Diffusion(2, 1, **reading)), whole)


def test_one_head_is_the_least():
    assert heads_at_a_time(torch.empty(10**6, 8, 500, device="meta"), 20) == 1
    assert heads_at_a_time(torch.empty(10, 8, 8), 6) == 8


def test_room_is_counted_for_the_steps_of_all_rounds(monkeypatch):
    counted = []
    monkeypatch.setattr("cagat.diffusion.by_heads.heads_at_a_time", lambda Z, steps: counted.append(steps) or 1)
    graph = CSRGraph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
    Z, G = torch.ones(3, 2, 1), torch.ones(graph.num_entries, 2)
    with torch.no_grad():
        features_by_heads(Z, G, graph, Coefficients(0.4, 0.3, 0.1), Diffusion(3, 2))
    assert counted == [6]
