import pytest
import torch

from cagat import CSRGraph
from cagat.nn.edge_features import edge_features_with_loops

GRAPH = CSRGraph.from_edge_index(torch.tensor([[0], [1]]), 2)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)])
def test_a_tensor_fills_every_loop(shape):
    filled = edge_features_with_loops(GRAPH, torch.zeros(1, 3), torch.ones(shape))
    assert torch.equal(filled, torch.tensor([[0.0] * 3, [1.0] * 3, [1.0] * 3]))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 3), (1, 1, 3)])
def test_a_tensor_of_another_size_is_refused(shape):
    with pytest.raises(ValueError, match=r"but edges have 3 features; give it shape \(3,\)"):
        edge_features_with_loops(GRAPH, torch.zeros(1, 3), torch.ones(shape))
