import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cagat import CSRGraph
from cagat.errors import NonFiniteError
from cagat.memory import OutOfMemoryError
from cagat.models import GRAND, appnp
from cagat.models.grand import MixedOrderPropagation
from cagat.training import TrainConfig

NODES, FEATURES = 30, 70  # More features than are propagated at a time.


@pytest.fixture
def graph():
    torch.manual_seed(0)
    edges = torch.randint(0, NODES, (2, 90)).unique(dim=1)  # Directed, some self-loops among them.
    x = torch.rand(NODES, FEATURES) * (torch.rand(NODES, FEATURES) < 0.2)
    return x, edges, torch.rand(edges.size(1))


def propagator(edge_index, weight, K):
    """The mean of the powers of the normalised adjacency matrix, dense."""
    A = torch.zeros(NODES, NODES)
    A[edge_index[1], edge_index[0]] = torch.ones(edge_index.size(1)) if weight is None else weight
    loops = A.diagonal()
    loops[loops == 0] = 1
    scale = A.sum(dim=1).rsqrt()
    P = scale[:, None] * A * scale
    return sum(torch.linalg.matrix_power(P, k) for k in range(K + 1)) / (K + 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("K", [0, 1, 8])
def test_evaluation_is_the_formula_of_the_paper(graph, K, weighted):
    x, edge_index, weight = graph
    weight = weight if weighted else None
    model = GRAND(FEATURES, 8, 3, K=K).eval()
    torch.nn.init.normal_(model.bias)
    mean = propagator(edge_index, weight, K)
    assert_close(model.propagation(x, edge_index, weight), mean @ x)
    hidden = (mean @ x @ model.lin1.weight.t() + model.bias).relu()
    assert_close(model.embed(x, edge_index, weight), hidden)
    expected = F.linear(hidden, model.lin2.weight, model.lin2.bias)
    assert_close(model(x, edge_index, weight), expected)
    assert_close(model(x.to_sparse_csr(), edge_index, weight), expected)


def test_whole_rows_are_dropped_and_the_rest_is_scaled(graph, monkeypatch):
    x, edge_index, _ = graph
    for input_dropout in (0.0, 1e-9):  # By either way to the hidden layer: products before propagation, or after it.
        model = GRAND(FEATURES, 8, 3, K=2, dropnode=0.75, input_dropout=input_dropout, dropout=0.0).train()
        propagated = []
        monkeypatch.setattr(model.propagation, "forward", lambda z, *_, kept=propagated: kept.append(z) or z)
        whole = x if input_dropout else x @ model.lin1.weight.t()
        dropped = 0
        for _ in range(40):
            propagated.clear()
            model(x, edge_index)
            rows = torch.cat(propagated, dim=1)
            kept = rows.abs().sum(dim=1) > 0
            assert_close(rows[kept], whole[kept] / 0.25)
            dropped += int((~kept).sum())
        assert dropped / (40 * NODES) == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("input_dropout", [0.0, 1e-9])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_training_propagates_what_is_left(graph, monkeypatch, input_dropout, layout):
    """Both ways to the hidden layer, with rows that are known to be dropped."""
    x, edge_index, weight = graph
    kept = 2.0 * (torch.arange(NODES) % 3 > 0)[:, None]
    monkeypatch.setattr("cagat.models.grand.dropout", lambda *_: kept)
    model = GRAND(FEATURES, 8, 3, K=4, input_dropout=input_dropout).train()
    torch.nn.init.normal_(model.bias)
    expected = (propagator(edge_index, weight, 4) @ (kept * x) @ model.lin1.weight.t() + model.bias).relu()
    given = x if layout == "dense" else x.to_sparse_csr()
    hidden = model.embed(given, edge_index, weight)
    assert_close(hidden, expected)
    gradients = [torch.autograd.grad(y.square().sum(), [model.lin1.weight, model.bias]) for y in (hidden, expected)]
    assert_close(*gradients)


def test_propagated_features_are_dropped_one_by_one():
    no_edges = torch.empty(2, 0, dtype=torch.long)
    model = GRAND(1000, 1000, 3, K=3, dropnode=0.0, input_dropout=0.75).train()
    with torch.no_grad():
        model.lin1.weight.copy_(torch.eye(1000))
    torch.manual_seed(0)
    found = model.embed(torch.ones(50, 1000), no_edges)
    assert set(found.unique().tolist()) == {0.0, 4.0}
    assert (found > 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    assert not torch.equal(found[0], found[1])


def test_each_call_in_training_drops_others(graph):
    x, edge_index, _ = graph
    model = GRAND(FEATURES, 8, 3, input_dropout=0.0, dropout=0.0).train()
    assert not torch.equal(model(x, edge_index), model(x, edge_index))
    assert torch.equal(model.eval()(x, edge_index), model(x, edge_index))


def test_gradients():
    torch.manual_seed(0)
    edges = torch.randint(0, 6, (2, 12)).unique(dim=1)
    prepared = CSRGraph.from_edge_index(edges, 6, dtype=torch.float64)
    z = torch.rand(6, 3, dtype=torch.float64, requires_grad=True)
    propagation = MixedOrderPropagation(3)
    assert torch.autograd.gradcheck(lambda z: propagation(z, prepared), z)
    assert torch.autograd.gradgradcheck(lambda z: propagation(z, prepared).square(), z)
    for input_dropout in (0.0, 0.5):
        model = GRAND(3, 4, 3, K=3, input_dropout=input_dropout).double().train()
        torch.nn.init.normal_(model.bias)  # So that nothing is at the kink of relu.

        def logits(z, model=model):
            torch.manual_seed(1)
            return model(z, prepared)

        assert torch.autograd.gradcheck(logits, z)


def test_one_program_is_what_single_steps_are(graph, monkeypatch):
    x, edge_index, weight = graph
    propagation = MixedOrderPropagation(5)
    x.requires_grad_()

    def found():
        y = propagation(x, edge_index, weight)
        return y.detach(), torch.autograd.grad(y.square().sum(), x)[0]

    fused = found()
    monkeypatch.setattr(appnp, "can_be_compiled", lambda *_: False)
    assert_close(fused, found())


def test_everything_decays():
    model = GRAND(5, 4, 3)
    (group,) = model.parameter_groups(0.1)
    assert group["weight_decay"] == 0.1
    assert len(group["params"]) == 4


def test_the_preset_asks_for_agreement():
    options = TrainConfig.from_values({"model": "grand"}).fit_options()
    assert (options.objective, options.samples, options.ramp, options.alignment) == ("consistent", 4, 0, 0.0)
    assert TrainConfig.from_values({"model": "grand", "samples": 2}).samples == 2
    alone = TrainConfig.from_values({"model": "grand", "objective": "supervised"})
    assert (alone.objective, alone.samples) == ("supervised", None)


def test_features_that_are_no_numbers_are_named_in_training(graph):
    x, edge_index, _ = graph
    x[1, 2] = float("nan")
    with pytest.raises(NonFiniteError, match="x holds 1 values"):
        GRAND(FEATURES, 8, 3, dropnode=0.0).train()(x, edge_index)


def test_features_that_do_not_fit_into_memory(graph, monkeypatch):
    x, edge_index, _ = graph
    monkeypatch.setattr("cagat.memory.free_memory", lambda: 5 * 4 * NODES * FEATURES - 1)
    model = GRAND(FEATURES, 8, 3).train()
    with pytest.raises(OutOfMemoryError, match=r"30 x 70 features.*Set input_dropout to 0"):
        model(x.to_sparse_csr(), edge_index)
    GRAND(FEATURES, 8, 3, input_dropout=0.0).train()(x.to_sparse_csr(), edge_index)
