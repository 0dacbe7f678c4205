"""What holds for every model, whatever it is."""

import json
from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from cagat import data
from cagat.errors import ConfigError, NonFiniteError
from cagat.models import Labelled, card, create, names
from cagat.nn import SparseFeatures
from cagat.training import FitOptions, FullBatch, Run, TrainConfig, Trainer

BAD = {
    "hidden": [0, 2.5],
    "layers": [0],
    "heads": [-1],
    "dropout": [2, -0.1, "half"],
    "attention_dropout": [1.5],
    "attention_weight_decay": [-1],
    "input_dropout": [1.5],
    "dropnode": [-0.5],
    "theta": [-1],
    "dense_weight_decay": [-1],
    "alpha": [-1, 2],
    "lam": [3],
    "xi": [-1e-3],
    "rounds": [-1],
    "steps": [-1, 0.5],
    "support": ["all"],
    "affinity": ["all"],
    "normalization": ["column"],
    "propagation": ["first"],
    "feedback": [1],
    "learn_coefficients": ["yes"],
    "weight_decay": [-1],
    "neighbours": [0],
    "batch_size": [0],
    "decay_biases": [3],
}


GRAPH = "synthetic:nodes=300,degree=4,classes=3,features=40,seed=0"
NODES, FEATURES, CLASSES = 300, 40, 3
FEWER = {"gcnii": {"layers": 4}}  # Its 64 show nothing more here.


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer(name, seed=0) -> Trainer:
    known, graph = card(name), data.load(GRAPH, sparse=True)
    split = data.split(graph.y, 10, 10, seed)
    train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
    values = known.preset()
    x = data.normalize_features(graph.x, values["feature_norm"])
    x = SparseFeatures.from_tensor(x) if known.network.takes_sparse else x.to_dense()
    options = {key: values[key] for key in ("lr", "weight_decay", "patience") if key in values}
    torch.manual_seed(seed)
    model = create(name, FEATURES, CLASSES, **FEWER.get(name, {}))
    return Trainer(FullBatch(model, (x, graph.edge_index, None), train, val), FitOptions(**options, epochs=3))


def finished(fitted: Trainer) -> Trainer:
    while not fitted.finished:
        fitted.run_epoch()
    fitted.finish()
    return fitted


@pytest.fixture(scope="module", params=names())
def fitted(request) -> Trainer:
    """Every model, trained for three epochs, or at once."""
    return finished(trainer(request.param))


def name_of(fitted: Trainer) -> str:
    return next(name for name in names() if card(name).network is type(fitted.model))


@torch.no_grad()
def logits_of(fitted: Trainer) -> torch.Tensor:
    return fitted.model(*fitted.plan.inputs)


def test_learns_and_predicts(fitted):
    assert len(fitted.history) == (1 if fitted.model.closed_form else 3)
    assert all(torch.tensor(epoch[:3]).isfinite().all() for epoch in fitted.history)
    logits = logits_of(fitted)
    assert logits.shape == (NODES, CLASSES)
    assert logits.isfinite().all()
    with torch.no_grad():
        hidden = fitted.model.embed(*fitted.plan.inputs)
    assert hidden.shape[0] == NODES
    assert hidden.isfinite().all()
    untrained = trainer(name_of(fitted))
    untrained.model.eval()
    assert not torch.equal(logits_of(untrained), logits)


def test_the_seed_decides_and_a_resumed_run_is_the_same(fitted):
    name, expected = name_of(fitted), logits_of(fitted)
    assert not torch.equal(logits_of(finished(trainer(name, seed=1))), expected)
    torch.rand(17)  # Whatever was drawn before does not matter.
    first = trainer(name)
    first.run_epoch()
    state = deepcopy(first.state_dict())
    assert torch.equal(logits_of(finished(first)), expected)
    torch.manual_seed(99)
    second = trainer(name)
    second.load_state_dict(state)
    finished(second)
    # As text: what is not a number is not equal to itself.
    assert str(second.history) == str(fitted.history)
    assert torch.equal(logits_of(second), expected)


def test_saved_weights_predict_the_same(fitted):
    saved = {key: weight.clone() for key, weight in fitted.model.state_dict().items()}
    torch.manual_seed(99)
    fresh = create(name_of(fitted), FEATURES, CLASSES, **FEWER.get(name_of(fitted), {}))
    fresh.load_state_dict(saved)
    with torch.no_grad():
        assert torch.equal(fresh.eval()(*fitted.plan.inputs), logits_of(fitted))


def test_evaluation_is_not_random_and_takes_any_layout(fitted):
    x, *edges = fitted.plan.inputs
    expected = logits_of(fitted)
    assert torch.equal(logits_of(fitted), expected)
    layouts = [x.to_dense(), x.to_dense().to_sparse_csr()] if fitted.model.takes_sparse else [x.clone()]
    with torch.no_grad():
        for layout in layouts:
            assert_close(fitted.model(layout, *edges), expected, rtol=1e-3, atol=1e-3)
        assert_close(fitted.model(x, edges[0]), expected)  # Edge weights may be left out.


@pytest.mark.parametrize("name", names())
def test_labels_of_test_nodes_are_not_read(name, monkeypatch, tmp_path):
    results, weights = [], []
    for shuffled in (False, True):
        graph = data.load(GRAPH, sparse=True)
        split = data.split(graph.y, 10, 10, 0)
        for part, mask in split.masks(NODES).items():
            graph[part] = mask
        if shuffled:
            # Shifted, so that also the accuracy of a model that says the same of every node changes.
            graph.y[split.test] = (graph.y[split.test] + 1) % CLASSES
            graph.y[split.test[0]] = graph.y[split.test[1]]
        monkeypatch.setattr("cagat.training.problem.load_graph", lambda *_, graph=graph: graph)
        values = {"model": name, "epochs": 2, "threads": 1, "baselines": False} | FEWER.get(name, {})
        config = TrainConfig.from_values(values)
        out = tmp_path / str(shuffled)
        Run.start(config, out).train()
        result = json.loads((out / "result.json").read_text())
        results.append(
            {key: result[key] for key in ("test_accuracy", "val_loss", "val_accuracy", "temperature", "epochs")}
        )
        weights.append((out / "model.safetensors").read_bytes())
        assert (out / "predictions.csv").exists()
    assert results[0].pop("test_accuracy") != results[1].pop("test_accuracy")
    assert results[0] == results[1]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("name", names())
def test_refuses_bad_hyperparameters(name):
    for key in card(name).network.hyperparameters:
        assert BAD[key], f"{key} has no bad value in this test"
        for value in BAD[key]:
            with pytest.raises(ConfigError, match=key) as refused:
                create(name, 6, 3, **{key: value})
            assert str(value) in str(refused.value)
            assert name in str(refused.value)
    with pytest.raises(ConfigError, match="has no 'hiden'"):
        create(name, 6, 3, hiden=8)


@pytest.mark.parametrize("name", names())
def test_refuses_bad_numbers_of_classes(name):
    for classes in (0, -1, True, 1.5, "3"):
        message = rf"{name}: out_channels must be a whole number of at least 1, but is {classes!r}"
        with pytest.raises(ConfigError, match=message):
            create(name, 6, classes)


@pytest.mark.parametrize("name", [name for name in names() if "labelprop" not in name])
def test_refuses_features_that_do_not_fit(name):
    edges, x = torch.tensor([[0, 1], [1, 2]]), torch.rand(3, 5)
    with pytest.raises(ConfigError, match="in_channels must be a whole number of at least 1"):
        create(name, -7, 3)
    with pytest.raises(ValueError, match=r"5 features.*in_channels=5"):
        create(name, 6, 3)(x, edges)
    with pytest.raises(TypeError, match=r"float64.*convert with x\.to\(torch\.float32\)"):
        create(name, 5, 3)(x.double(), edges)
    for value in (float("nan"), float("inf")):
        x[1, 2] = value
        with pytest.raises(NonFiniteError, match=r"1 values.*nan_to_num"):
            create(name, 5, 3).eval()(x, edges)


@pytest.mark.parametrize("name", [name for name in names() if name not in ("mlp", "logreg")])
def test_refuses_edges_that_do_not_fit(name):
    model, x = create(name, 5, 3), torch.rand(3, 5)
    for edges, message in (
        ([[0], [1]], r"list.*torch\.as_tensor"),
        (torch.tensor([[0], [3]]), "names node 3.*renumber"),
        (torch.tensor([[0.0], [1.0]]), r"float32.*\.long\(\)"),
    ):
        with pytest.raises((TypeError, IndexError), match=message):
            model(x, edges)


@pytest.mark.parametrize("name", names())
def test_weight_decay_reaches_adam(name):
    model = create(name, 6, 3)
    groups = model.parameter_groups(0.25)
    optimised = [id(parameter) for group in groups for parameter in group["params"]]
    assert len(optimised) == len(set(optimised))
    if not model.closed_form:
        assert any(group["weight_decay"] == 0.25 for group in groups)
        torch.optim.Adam(groups)


@pytest.mark.parametrize("name", names())
def test_weighted_graphs(name):
    x = torch.rand(30, 6)
    edges = torch.randint(0, 30, (2, 80)).unique(dim=1)
    model = create(name, 6, 3)
    train = Labelled(torch.arange(9), torch.arange(9) % 3)
    inputs = (x, edges, torch.rand(edges.size(1)))
    (model.solve if model.closed_form else lambda *_: None)(inputs, train)
    assert all(loss.isfinite() for loss in FullBatch(model, inputs, train, train).losses(1))
    with torch.no_grad():
        assert model.eval()(*inputs).isfinite().all()
