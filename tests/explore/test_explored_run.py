import numpy as np
import pytest
import torch
from torch.testing import assert_close

from cagat import explore
from cagat.errors import ConfigError
from cagat.explore import explored_run
from cagat.explore.explored_run import STRONGEST, ExploredRun, NoAttentionError, RowSummary

NODES = torch.tensor([2, 7, 30])


def test_rounds_are_those_of_the_model(run):
    nodes = torch.tensor([0, 5])
    inputs = run.inputs(run.problem.graph)
    layers = ExploredRun.of(run).layers
    assert [(layer.number, layer.G.heads, len(layer.rounds)) for layer in layers] == [(1, 3, 2), (2, 1, 2)]
    for done in range(3):
        for layer, rows in zip(layers, run.model.attention(*inputs, nodes=nodes, rounds=done), strict=True):
            assert_close(layer.G.rows(nodes), rows.G)
            assert_close((layer.G, *layer.rounds)[done].rows(nodes), rows.S)


def test_gat_has_attention_that_sums_to_one(gat_run):
    first, second = ExploredRun.of(gat_run).layers
    assert (first.G.heads, second.G.heads, first.rounds) == (2, 1, ())
    x, edge_index, _ = gat_run.inputs(gat_run.problem.graph)
    _, (edges, attention) = gat_run.model.conv1(x, edge_index, return_attention_weights=True)
    rows = first.G.rows(torch.tensor([4]))[0]
    assert_close(rows.sum(dim=1), torch.ones(2))
    into = edges[1] == 4
    assert_close(rows[:, edges[0, into]], attention[into].t())


def test_other_models_have_none(gcn_run):
    with pytest.raises(NoAttentionError, match=r"The model gcn has no attention.*cagat train --model cagat"):
        ExploredRun.of(gcn_run).layer(None)


def test_layers_that_do_not_aggregate_have_none(train, graph_folder, tmp_path):
    small = {"hidden": 4, "heads": 2, "epochs": 1}
    last = train(tmp_path / "last", graph_folder, propagation="last", **small)
    (layer,) = ExploredRun.of(last).layers
    assert (layer.number, layer.G.heads) == (2, 1)
    view = explore.neighbourhood(last, 0)
    assert view.frame.equals(explore.neighbourhood(last, 0, layer=2).frame)
    with pytest.raises(ConfigError, match="attention in layer 2, but layer 1 was asked for"):
        explore.neighbourhood(last, 0, layer=1)
    figure = explore.attention_agreement(last).figure
    assert [trace.name for trace in figure.data] == ["neighbours", "all nodes", "counted"]
    assert [title.text for title in figure.layout.annotations] == ["layer 2"]
    with pytest.raises(NoAttentionError, match="With lam=0 no layer aggregates"):
        ExploredRun.of(train(tmp_path / "none", graph_folder, lam=0.0, **small)).layer(None)


@pytest.mark.parametrize("block", [1, 2**24])
def test_rows_are_cut_down_to_what_is_strongest(run, block, monkeypatch):
    monkeypatch.setattr(explored_run, "_BLOCK_NUMBERS", block)
    layer = ExploredRun.of(run).layers[0]
    found = RowSummary.of(layer, NODES.numpy())
    assert found.others.shape == (2, 4, 3, STRONGEST)
    for done in range(3):
        rows = (layer.G, *layer.rounds)[done].rows(NODES).numpy()
        for place, row in enumerate(rows):
            edges = slice(found.offsets[place], found.offsets[place + 1])
            neighbours = found.neighbours[edges]
            assert NODES[place] in neighbours
            np.testing.assert_allclose(found.on_edges[done, edges], row[:, neighbours].T)
            shares = np.maximum(row, 0) / np.maximum(row, 0).sum(axis=1, keepdims=True)
            bits = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1).mean()
            assert found.entropy[done, place] == pytest.approx(bits, rel=1e-5)
            if done:
                off = row.copy()
                off[:, neighbours] = 0
                for column, values in enumerate([*off, off.mean(axis=0)]):
                    best = np.sort(values)[::-1][:STRONGEST]
                    np.testing.assert_allclose(found.other_values[done - 1, column, place], best, rtol=1e-5)
                    np.testing.assert_allclose(values[found.others[done - 1, column, place]], best, rtol=1e-5)


def test_without_context_there_are_no_other_pairs(gat_run):
    found = RowSummary.of(ExploredRun.of(gat_run).layers[0], NODES.numpy())
    assert found.others.size == 0
    assert found.on_edges.shape[0] == 1
