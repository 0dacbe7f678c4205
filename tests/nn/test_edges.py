import pytest
import torch
from torch.testing import assert_close
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import GATConv

from cagat import CaGATConv, CSRGraph
from cagat.nn.edges import edge_features_with_loops
from processes import in_a_process

EDGES = torch.stack([torch.arange(90) % 30, (7 * torch.arange(90) + 1 + torch.arange(90) // 30) % 30])
GRAPH = CSRGraph.from_edge_index(torch.tensor([[0], [1]]), 2)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)])
def test_a_tensor_fills_every_loop(shape):
    filled = edge_features_with_loops(GRAPH, torch.zeros(1, 3), torch.ones(shape))
    assert torch.equal(filled, torch.tensor([[0.0] * 3, [1.0] * 3, [1.0] * 3]))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 3), (1, 1, 3)])
def test_a_tensor_of_another_size_is_refused(shape):
    with pytest.raises(ValueError, match=r"but edges have 3 features; give it shape \(3,\)"):
        edge_features_with_loops(GRAPH, torch.zeros(1, 3), torch.ones(shape))


def _after_a_layer_of_pyg() -> None:
    GATConv(3, 2)
    conv, edge_index = CaGATConv(3, 2), torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv.explain, conv._edge_mask, conv._apply_sigmoid = True, torch.ones(3), False
    x = torch.rand(3, 3)
    masked = conv(x, edge_index)
    conv.explain = False
    assert torch.allclose(masked, conv(x, edge_index))


class TestExplainers:
    def explainer(self, conv, algorithm):
        return Explainer(
            conv,
            algorithm,
            explanation_type="model",
            edge_mask_type="object",
            model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
        )

    def test_a_layer_of_pyg_that_was_made_before_changes_nothing(self):
        in_a_process(_after_a_layer_of_pyg)

    def test_attention_explainer_gives_each_edge_its_own_weight_also_with_self_loops(self):
        conv = CaGATConv(5, 4, 2).eval()
        edge_index = torch.cat([torch.tensor([[3, 8], [3, 8]]), EDGES], dim=1)
        edge_index = edge_index[:, torch.randperm(edge_index.size(1))]
        x = torch.randn(30, 5)
        explanation = self.explainer(conv, AttentionExplainer())(x, edge_index)
        _, (edges, attention) = conv(x, edge_index, return_attention_weights=True)
        assert torch.equal(edges[:, : edge_index.size(1)], edge_index)
        assert_close(explanation.edge_mask, attention[: edge_index.size(1)].max(dim=1).values)

    @pytest.mark.parametrize("feedback", [False, True])
    def test_a_mask_scales_the_messages_of_edges_and_leaves_the_rest(self, feedback):
        conv = CaGATConv(5, 4, 2, feedback=feedback, bias=False).eval()
        edge_index = torch.cat([torch.tensor([[3], [3]]), EDGES], dim=1)
        x = torch.randn(30, 5)
        plain = conv(x, edge_index)
        conv.explain, conv._apply_sigmoid = True, False
        conv._edge_mask = torch.ones(edge_index.size(1))
        assert_close(conv(x, edge_index), plain)
        conv._edge_mask = torch.ones(edge_index.size(1))
        conv._edge_mask[5] = 0
        changed = (conv(x, edge_index) - plain).abs().sum(dim=1)
        assert changed.nonzero().flatten().tolist() == [int(edge_index[1, 5])]

    def test_copies_of_an_edge_carry_their_share(self):
        conv = CaGATConv(5, 4, 2, bias=False).eval()
        once = EDGES
        twice = torch.cat([once, once[:, :1]], dim=1)
        x = torch.randn(30, 5)
        plain, target = conv(x, once), int(once[1, 0])
        conv.explain, conv._apply_sigmoid = True, False
        conv._edge_mask = torch.ones(once.size(1))
        conv._edge_mask[0] = 0
        expected = conv(x, once)
        assert not torch.allclose(expected[target], plain[target])
        conv._edge_mask = torch.ones(twice.size(1))
        conv._edge_mask[[0, -1]] = 0
        assert_close(conv(x, twice), expected)

    def test_a_mask_may_be_given_by_its_logits(self):
        conv, edge_index, x = CaGATConv(5, 4, bias=False).eval(), EDGES, torch.randn(30, 5)
        conv.explain, conv._apply_sigmoid = True, True
        conv._edge_mask = torch.full((edge_index.size(1),), 50.0)
        open_mask = conv(x, edge_index)
        conv._edge_mask = torch.full((edge_index.size(1),), -50.0)
        closed = conv(x, edge_index)
        conv.explain = False
        assert_close(open_mask, conv(x, edge_index))
        assert not torch.allclose(closed, open_mask)

    def test_gnn_explainer_runs(self):
        conv, x = CaGATConv(5, 4, concat=False), torch.randn(30, 5)
        explanation = self.explainer(conv, GNNExplainer(epochs=3))(x, EDGES, index=4)
        assert explanation.edge_mask.abs().sum() > 0
