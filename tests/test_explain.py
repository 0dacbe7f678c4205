import pytest
import torch
from torch.testing import assert_close
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer, fidelity

from cagat import explain
from cagat.models import GCN, CaGAT

MODEL = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


@pytest.fixture(scope="module")
def graph():
    torch.manual_seed(0)
    edges = torch.randint(0, 40, (2, 60))
    return torch.randn(40, 6), torch.cat([edges, edges.flip(0)], dim=1)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    return CaGAT(6, 4, 2, 3, heads=2, K=2, xi=0.05).eval()


def explainer(model, algorithm, kind="model") -> Explainer:
    return Explainer(model, algorithm, explanation_type=kind, edge_mask_type="object", model_config=MODEL)


@pytest.mark.parametrize("reduce", ["max", "mean"])
@pytest.mark.parametrize("index", [3, torch.tensor([0, 7])])
def test_edges_are_those_of_pygs_attention_explainer(model, graph, reduce, index):
    ours = explainer(model, explain.ContextExplainer(reduce))(*graph, index=index)
    theirs = explainer(model, AttentionExplainer(reduce))(*graph, index=index)
    assert ours.edge_mask.count_nonzero() > 3
    assert_close(ours.edge_mask, theirs.edge_mask)
    assert not model.convs[0].is_explained


def test_pairs_are_the_strongest_off_the_edges(model, graph):
    x, edge_index = graph
    found = explain.explanation(model, x, edge_index, 3, pairs=5)
    rows = torch.stack([layer.S[0].amax(dim=0) for layer in model.attention(x, edge_index, nodes=3)]).amax(dim=0)
    rows[edge_index[0, edge_index[1] == 3]] = 0
    rows[3] = 0
    weights, sources = rows.topk(5)
    assert_close(found.context_weight, weights)
    assert found.context_index.tolist() == [sources.tolist(), [3] * 5]


def test_pyg_goes_on_with_the_explanation(model, graph):
    found = explain.explanation(model, *graph, 3)
    assert found.validate()
    assert 0 < found.get_explanation_subgraph().num_edges < graph[1].size(1)
    positive, negative = fidelity(explainer(model, explain.ContextExplainer()), found)
    assert 0 <= positive <= 1
    assert 0 <= negative <= 1


def test_gnn_explainer_works_beside_it(model, graph):
    found = explainer(model, GNNExplainer(epochs=2))(*graph, index=3)
    assert found.edge_mask.shape == (graph[1].size(1),)


def test_a_model_of_ones_own_with_weights(graph):
    from cagat import CaGATConv

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = CaGATConv(6, 3)

        def forward(self, x, edge_index, edge_attr=None):
            return self.conv(x.relu(), edge_index, edge_attr=edge_attr)

    x, edge_index = graph
    weights = torch.rand(edge_index.size(1))
    own = Own()
    found = explain.explanation(own, x, edge_index, 3, edge_attr=weights)
    row = own.conv.attention(x.relu(), edge_index, weights, nodes=3).S[0, 0]
    into = edge_index[1] == 3
    assert_close(found.edge_mask[into], row[edge_index[0, into]])


def test_refusals(model, graph):
    with pytest.raises(explain.NoContextError, match="GCN has no CaGATConv"):
        explain.explanation(GCN(6, 4, 3), *graph, 3)
    with pytest.raises(ValueError, match="say which with index="):
        explainer(model, explain.ContextExplainer())(*graph)
    with pytest.raises(ValueError, match="does not support"):
        explainer(model, explain.ContextExplainer(), "phenomenon")
    with pytest.raises(ValueError, match="reduce must be one of max, mean"):
        explain.ContextExplainer("min")
