import pytest
import torch

from cagat.kernels import CSRGraph, torch_products
from cagat.memory import OutOfMemoryError


def test_pairs_of_neighbours_that_do_not_fit_are_refused(monkeypatch):
    leaves = torch.arange(1, 2001)
    graph = CSRGraph.from_edge_index(torch.stack([leaves, leaves * 0]), 2001)
    edges = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    graph = CSRGraph.from_edge_index(edges, 2001)
    pattern, weights = graph.pattern, graph.transition("row", torch.float32)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 10**8}))
    with pytest.raises(OutOfMemoryError, match=r'2001 nodes with degrees up to 2001 would need .*support="full"'):
        torch_products.edge_diffusion(pattern, weights, torch.ones(graph.num_entries, 8), False)
