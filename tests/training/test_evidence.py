import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from cagat import CaGAT, reference
from cagat.models import GCN
from cagat.training.evidence import NAMED, Evidence, find_evidence, percent
from graph_strategies import graphs

READINGS = [
    {"support": support, "normalization": normalization}
    for support in ("full", "edges")
    for normalization in ("row", "sym", "walk", "gcn")
    if (support, normalization) != ("edges", "walk")
]
CLASSES = 4


def network(x: torch.Tensor, heads: int = 1, **changes) -> CaGAT:
    torch.manual_seed(0)
    settings = {"hidden_channels": 3, "num_layers": 2, "heads": 2, "K": 2, "T": 1, "alpha": 0.7, "lam": 0.8, "xi": 0.0}
    return CaGAT(x.size(1), out_channels=CLASSES, output_heads=heads, **settings | changes).double().eval()


def dense_contributions(model: CaGAT, x, edge_index, weight, predicted) -> torch.Tensor:
    """What each node (columns) adds to the class of each node (rows), against the mean over the classes."""
    conv, features = model.convs[-1], model.layer_inputs(x, edge_index, weight)[-1]
    Z = conv.lin(features).view(-1, conv.heads, CLASSES)
    switches = {name: getattr(conv, name) for name in ("support", "affinity", "normalization")}
    A, edge = reference.dense_adjacency(edge_index, len(x), weight)
    coefficients = {"alpha": conv.alpha, "lam": conv.lam, "xi": conv.xi}
    S = reference.cagat_layer(
        Z, conv.att_src[0], conv.att_dst[0], A, edge, K=conv.K, T=conv.T, **coefficients, **switches
    ).S
    centred = Z - Z.mean(dim=-1, keepdim=True)
    found = torch.zeros(len(x), len(x), dtype=x.dtype)
    for i in range(len(x)):
        for j in range(len(x)):
            parts = conv.lam * S[:, i, j] * centred[j, :, predicted[i]]
            if i == j:
                parts = parts + (1 - conv.lam) * centred[i, :, predicted[i]]
            found[i, j] = parts.mean()
    return found


@torch.no_grad()
def check(model: CaGAT, x, edge_index, weight, labelled) -> Evidence:
    logits = model(x, edge_index, weight)
    predicted = logits.argmax(dim=1)
    found = find_evidence(model, (x, edge_index, weight), predicted, labelled)
    dense = dense_contributions(model, x, edge_index, weight, predicted)
    # Their sum, and the bias, is the logit itself.
    bias = model.convs[-1].bias - model.convs[-1].bias.mean()
    centred = logits - logits.mean(dim=1, keepdim=True)
    assert_close(dense.sum(dim=1) + bias[predicted], centred.gather(1, predicted[:, None])[:, 0])
    shares = dense.clamp(min=0) / dense.clamp(min=0).sum(dim=1, keepdim=True).clamp(min=1e-300)
    expected = shares[:, labelled].sort(dim=1, descending=True).values[:, :NAMED]
    expected = torch.nn.functional.pad(expected, (0, NAMED - expected.size(1)))
    assert_close(found.shares, expected, rtol=1e-10, atol=1e-10)
    named = found.nodes >= 0
    assert torch.equal(named, found.shares > 0)
    rows = torch.arange(len(x))[:, None].expand_as(named)
    assert_close(shares[rows[named], found.nodes[named]], found.shares[named], rtol=1e-10, atol=1e-10)
    assert set(found.nodes[named].tolist()) <= set(labelled.tolist())
    return found


@given(graphs(min_nodes=1), st.sampled_from(READINGS), st.sampled_from([1, 3]), st.sampled_from([0.0, 0.3]), st.data())
def test_shares_equal_the_dense_reference(graph, reading, heads, xi, data):
    n = graph.num_nodes
    x = torch.randn(n, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    labelled = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True)))
    check(network(x, heads, xi=xi, **reading), x, graph.edge_index, graph.edge_weight, labelled)


@pytest.mark.parametrize("changes", [{}, {"xi": 0.3}, {"heads": 2}, {"affinity": "full", "xi": 0.1}])
def test_blocks_of_columns_give_what_one_block_gives(changes, monkeypatch):
    torch.manual_seed(1)
    x, edges = torch.randn(40, 5, dtype=torch.float64), torch.randint(0, 40, (2, 90))
    heads = changes.pop("heads", 1)
    model, labelled = network(x, heads, **changes), torch.randperm(40)[:25]
    whole = check(model, x, edges, None, labelled)
    monkeypatch.setattr("cagat.diffusion.attention._BLOCK_BYTES", 2 * 2 * 3 * 40 * heads * 8)
    blocks = check(model, x, edges, None, labelled)
    assert torch.equal(blocks.nodes, whole.nodes)
    assert_close(blocks.shares, whole.shares)


@pytest.mark.parametrize("changes", [{"feedback": True}, {"learn_coefficients": True}, {"lam": 0.0}, {"lam": 1.0}])
def test_other_layers(changes):
    """Contributions sum up to the logits whatever the layer does; here by those of all nodes, found one by one."""
    torch.manual_seed(2)
    x, edges = torch.randn(12, 5, dtype=torch.float64), torch.randint(0, 12, (2, 30))
    model = network(x, **changes)
    predicted = model(x, edges).argmax(dim=1)
    shares = torch.stack(
        [find_evidence(model, (x, edges), predicted, torch.tensor([node])).shares[:, 0] for node in range(12)]
    )
    assert_close(shares.sum(dim=0), torch.ones(12, dtype=torch.float64))
    if changes == {"lam": 0.0}:
        assert_close(shares, torch.eye(12, dtype=torch.float64))


def test_too_much_work_is_left_out_unless_asked_for(monkeypatch, caplog):
    caplog.set_level("INFO")
    x, edges = torch.randn(12, 5, dtype=torch.float64), torch.randint(0, 12, (2, 30))
    model, labelled = network(x), torch.tensor([1, 2])
    predicted = model(x, edges).argmax(dim=1)
    monkeypatch.setattr("cagat.training.evidence._MOST_WORK", 100)
    assert find_evidence(model, (x, edges), predicted, labelled) is None
    assert "cagat predict RUN --because" in caplog.text
    assert find_evidence(model, (x, edges), predicted, labelled, always=True) is not None


def test_other_models_and_no_labels_have_none():
    x, edges = torch.randn(12, 5), torch.randint(0, 12, (2, 30))
    nobody = torch.empty(0, dtype=torch.long)
    assert find_evidence(GCN(5, 3, 2), (x, edges), nobody, torch.tensor([1])) is None
    assert find_evidence(network(x.double()), (x.double(), edges), nobody, nobody) is None


def test_texts():
    evidence = Evidence(torch.tensor([[2, 0, -1], [-1, -1, -1]]), torch.tensor([[0.312, 0.041, 0], [0, 0, 0]]))
    assert evidence.texts(["a", "b", "p12"]) == ["p12 31 %; a 4.1 %", ""]
    assert [percent(share) for share in (1, 0.0951, 0.0949, 0.0006, 0.0001)] == [
        "100 %", "10 %", "9.5 %", "0.1 %", "<0.1 %",
    ]  # fmt: skip
