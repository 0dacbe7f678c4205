from collections import Counter
from itertools import combinations, product

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cagat.kernels import CSRGraph
from cagat.models import CVDPP, GCN, Labelled, cvd_pp
from cagat.models.cvd_pp import SampledNeighbours, sample_neighbours
from cagat.models.gcn import gcn_graph, propagate


@pytest.fixture
def problem():
    """A random graph whose training nodes have five neighbours and three, themselves among them."""
    torch.manual_seed(0)
    into = torch.tensor([[2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 1, 1]])
    rest = torch.randint(2, 12, (2, 40))
    edges = torch.cat([into, rest], dim=1).unique(dim=1)
    return (torch.randn(12, 4).double(), edges), Labelled(torch.tensor([0, 1]), torch.tensor([2, 0]))


def made(problem, **changes) -> CVDPP:
    torch.manual_seed(1)
    return CVDPP(**{"in_channels": 4, "hidden_channels": 5, "out_channels": 3, "dropout": 0.0} | changes).double()


def gradients(loss, model):
    return torch.cat([gradient.flatten() for gradient in torch.autograd.grad(loss, list(model.parameters()))])


def hidden_layer(model, inputs):
    return model.embed(*inputs).detach()


def every_draw(pattern, nodes, count):
    """All samples that can come, each as likely as the others."""
    row_of, entry = pattern.entries_of(nodes)
    rows = [entry[row_of == row].tolist() for row in range(len(nodes))]
    for chosen in product(*(combinations(entries, min(count, len(entries))) for entries in rows)):
        row = torch.tensor([number for number, entries in enumerate(chosen) for _ in entries])
        ratio = torch.tensor([len(all_) / len(some) for all_, some in zip(rows, chosen, strict=True)])
        yield SampledNeighbours(row, torch.tensor([entry for entries in chosen for entry in entries]), ratio)


def gradients_of_every_draw(monkeypatch, model, inputs, train, history):
    graph = gcn_graph(inputs[0], inputs[1])
    monkeypatch.setattr(torch, "randperm", lambda size, device: torch.arange(size))
    found = []
    for sample in every_draw(graph.pattern, train.nodes, 2):
        monkeypatch.setattr(cvd_pp, "sample_neighbours", lambda *_, sample=sample: sample)
        model.load_training_state({"history": history})
        (loss,) = model.losses(inputs, train)
        found.append(gradients(loss, model))
    return torch.stack(found)


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_with_all_neighbours_and_no_dropout_it_is_gcn(problem, batch_size):
    inputs, _ = problem
    train = Labelled(torch.arange(7), torch.arange(7) % 3)
    model, gcn = made(problem, neighbours=100, batch_size=batch_size), GCN(4, 5, 3, dropout=0.0).double()
    gcn.load_state_dict(model.state_dict())
    assert torch.equal(model(*inputs), gcn(*inputs))
    model.load_training_state({"history": torch.randn(12, 5).double()})  # It cancels, whatever it is.
    losses = list(model.losses(inputs, train))
    sizes = [len(part) for part in torch.arange(7).split(batch_size)]
    total = sum(size / 7 * loss for size, loss in zip(sizes, losses, strict=True))
    expected = F.cross_entropy(gcn(*inputs)[train.nodes], train.classes)
    assert_close(total, expected)
    assert_close(gradients(total, model), gradients(expected, gcn))


def test_the_gradient_is_unbiased_and_varies_less_than_with_plain_sampling(problem, monkeypatch):
    inputs, train = problem
    model = made(problem)
    exact = gradients(F.cross_entropy(model(*inputs)[train.nodes], train.classes), model)
    current = hidden_layer(model, inputs)
    with_history = gradients_of_every_draw(monkeypatch, model, inputs, train, current)
    assert len(with_history) == 10 * 3
    assert_close(with_history.mean(dim=0), exact)
    assert with_history.var(dim=0).max() > 1e-8  # So it is the mean that is right, not every draw.
    # An empty history leaves plain neighbour sampling: R times the sum of what was drawn.
    plain = gradients_of_every_draw(monkeypatch, model, inputs, train, torch.zeros_like(current))
    stale = gradients_of_every_draw(monkeypatch, model, inputs, train, 0.8 * current)
    variances = [found.var(dim=0).sum().item() for found in (with_history, stale, plain)]
    assert variances[0] < variances[1] < variances[2]
    assert variances[0] < 0.8 * variances[2]
    # With this history the logits are exact, so that nothing varies but what goes down to the first layer.
    last_layer = with_history[:, -(5 * 3 + 3) :]
    assert last_layer.var(dim=0).max() < 1e-20
    assert plain[:, -(5 * 3 + 3) :].var(dim=0).max() > 1e-4


def test_an_empty_history_is_plain_neighbour_sampling(problem, monkeypatch):
    inputs, train = problem
    model = made(problem)
    graph = gcn_graph(inputs[0], inputs[1])
    P = graph.transition("sym", torch.float64)[0]
    sample = next(every_draw(graph.pattern, train.nodes, 2))
    found = gradients_of_every_draw(monkeypatch, model, inputs, train, torch.zeros(12, 5).double())[0]
    h = F.relu(model.conv1(*inputs))[graph.pattern.col[sample.entry].long()]
    parts = sample.ratio.double()[sample.row, None] * P[sample.entry, None] * h
    aggregated = torch.zeros(2, 5).double().index_add(0, sample.row, parts)
    logits = aggregated @ model.conv2.lin.weight.t() + model.conv2.bias
    assert_close(found, gradients(F.cross_entropy(logits, train.classes), model))


def test_the_aggregate_is_unbiased_whatever_the_history(problem, monkeypatch):
    inputs, train = problem
    model, seen = made(problem), []
    model.conv2.lin.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].detach()))
    history = torch.randn(12, 5).double()
    gradients_of_every_draw(monkeypatch, model, inputs, train, history)
    exact = propagate(hidden_layer(model, inputs), inputs[1])[train.nodes]
    assert_close(torch.stack(seen).mean(dim=0), exact)


def test_dropout_varies_as_with_all_neighbours(problem):
    # Where no unit is ever cut off, mu is the mean of h, and the paper's claims hold exactly. Many copies of the graph
    # side by side give as many independent draws at once.
    (x, edges), train = problem
    copies = 4000
    shift = 12 * torch.arange(copies)
    many = (x.abs().repeat(copies, 1), (edges[:, None, :] + shift[:, None]).flatten(1))
    everywhere = Labelled((train.nodes + shift[:, None]).flatten(), train.classes.repeat(copies))

    def aggregates(neighbours, history):
        model, seen = made(problem, dropout=0.3, neighbours=neighbours, batch_size=10**6), []
        torch.nn.init.uniform_(model.conv1.lin.weight, 0.5, 1.0)
        model.conv2.lin.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].detach()))
        current = hidden_layer(model.eval(), many)
        model.train().load_training_state({"history": history * current})
        torch.manual_seed(2)
        order = torch.randperm(len(everywhere.nodes))  # As the model will draw it.
        torch.manual_seed(2)
        list(model.losses(many, everywhere))
        drawn = torch.empty_like(seen[0])
        drawn[order] = seen[0]
        return propagate(current, many[1])[train.nodes], drawn.view(copies, 2, -1)

    exact, found = aggregates(neighbours=2, history=1.0)
    _, all_drawn = aggregates(neighbours=100, history=1.0)
    for draws in (found, all_drawn):
        error = draws.std(dim=0) / copies**0.5
        assert ((draws.mean(dim=0) - exact).abs() < 5 * error).all()
    assert_close(found.var(dim=0), all_drawn.var(dim=0), rtol=0.2, atol=0.0)


def test_history_is_written_after_the_step(problem):
    inputs, train = problem
    model = made(problem, neighbours=100)
    before = hidden_layer(model, inputs)
    losses = model.losses(inputs, train)
    next(losses)
    assert not model.training_state()["history"].any()
    with torch.no_grad():
        model.conv1.lin.weight.add_(1)  # The trainer's step.
    assert next(losses, None) is None
    history = model.training_state()["history"]
    pattern = gcn_graph(*inputs).pattern
    nodes = pattern.col[pattern.entries_of(train.nodes)[1]].long().unique()
    assert_close(history[nodes], before[nodes])
    others = torch.ones(12, dtype=torch.bool).index_fill(0, nodes, False)
    assert not history[others].any()


def test_products_are_made_once_and_anew_for_other_features(problem, monkeypatch):
    inputs, train = problem
    model, product, calls = made(problem), cvd_pp._product, []
    monkeypatch.setattr(cvd_pp, "_product", lambda *inputs: calls.append(1) or product(*inputs))
    for _ in range(3):
        list(model.losses(inputs, train))
    assert len(calls) == 1
    list(model.losses((2 * inputs[0], inputs[1]), train))
    assert len(calls) == 2


def test_refuses_what_does_not_fit_in_memory(problem, monkeypatch):
    from cagat.memory import OutOfMemoryError

    inputs, train = problem
    monkeypatch.setattr("cagat.memory.psutil.virtual_memory", lambda: type("Memory", (), {"available": 100})())
    with pytest.raises(OutOfMemoryError, match=r"12 x 4 features.*Train gcn instead"):
        list(made(problem).losses(inputs, train))


@pytest.fixture
def graph():
    # Node 0 has the neighbours 1, 2, 3, node 4 has none but itself.
    edges = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    return CSRGraph.from_edge_index(edges, 5)


def drawn_sets(graph, sample, nodes):
    columns = graph.pattern.col[sample.entry].tolist()
    sets = [set() for _ in nodes]
    for row, column in zip(sample.row.tolist(), columns, strict=True):
        sets[row].add(column)
    return sets


def test_all_entries_of_rows(graph):
    row, entry = graph.pattern.entries_of(torch.tensor([4, 0, 2]))
    assert row.tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert graph.pattern.col[entry].tolist() == [4, 0, 1, 2, 3, 0, 2]


def test_every_pair_is_drawn_alike(graph):
    torch.manual_seed(0)
    nodes = torch.zeros(12_000, dtype=torch.long)
    sample = sample_neighbours(graph.pattern, nodes, 2)
    counts = Counter(map(frozenset, drawn_sets(graph, sample, nodes)))
    assert set(counts) == {frozenset(pair) for pair in combinations(range(4), 2)}
    assert all(1800 < count < 2200 for count in counts.values())
    assert_close(sample.ratio, torch.full((12_000,), 2.0))


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_no_more_than_there_are_and_none_twice(graph, count):
    nodes = torch.tensor([3, 4, 0])
    sample = sample_neighbours(graph.pattern, nodes, count)
    sizes = [2, 1, 4]
    assert [len(drawn) for drawn in drawn_sets(graph, sample, nodes)] == [min(count, size) for size in sizes]
    assert torch.bincount(sample.row).tolist() == [min(count, size) for size in sizes]
    assert sample.ratio.tolist() == pytest.approx([size / min(count, size) for size in sizes])
