import numpy as np
import pytest
import torch

from cagat.explore import attention_agreement
from cagat.explore.agreement import change, summary
from cagat.explore.explored_run import ExploredRun


@pytest.fixture(scope="module")
def view(run):
    return attention_agreement(run)


def test_shares_of_every_test_node(view, run):
    """One by one, from whole rows: what the products with the classes must come to."""
    explored = ExploredRun.of(run)
    labels, tests = explored.labels, explored.run.problem.split.test
    assert len(view.frame) == len(tests) * 2 * 3
    for layer in explored.layers:
        for done in range(3):
            rows = (layer.G, *layer.rounds)[done].rows(tests).double().numpy()
            part = view.frame[(view.frame["layer"] == layer.number) & (view.frame["round"] == done)].set_index("node")
            for row, node in zip(rows, tests.tolist(), strict=True):
                found = part.loc[explored.names[node]]
                same = labels == labels[node]
                assert found["all"] == pytest.approx((row[:, same].sum(1) / row.sum(1)).mean(), abs=1e-5)
                sources = explored.graph.edge_index[0, explored.graph.edge_index[1] == node].numpy()
                sources = sources[labels[sources] >= 0]
                mine = labels[sources] == labels[node]
                if len(sources):
                    share = (row[:, sources[mine]].sum(1) / row[:, sources].sum(1)).mean()
                    assert found["neighbours"] == pytest.approx(share, abs=1e-5)
                    assert found["counted"] == pytest.approx(mine.mean())


def test_summary_and_sentence(view):
    table = summary(view.frame)
    row = table[(table["layer"] == 2) & (table["round"] == 2) & (table["measure"] == "neighbours")].iloc[0]
    part = view.frame[(view.frame["layer"] == 2) & (view.frame["round"] == 2)]["neighbours"].dropna()
    assert row["mean"] == pytest.approx(part.mean())
    assert row["half"] == pytest.approx(2.04 * part.std() / np.sqrt(len(part)), rel=0.02)
    before = view.frame[(view.frame["layer"] == 2) & (view.frame["round"] == 0)]["neighbours"].dropna()
    assert f"{100 * (part.mean() - before.mean()):+.1f} points" in change(view.frame)
    assert view.caption.startswith("In the last layer, S puts ")
    assert f"over {len(part)} test nodes" in view.details


def test_every_layer_has_its_dotted_line(view):
    dashes = [(trace.xaxis, trace.line.dash) for trace in view.figure.data]
    assert sorted(dashes) == sorted((axis, dash) for axis in ("x", "x2") for dash in ("solid", "dash", "dot"))
    assert [title.text for title in view.figure.layout.annotations] == ["layer 1", "layer 2"]


def test_a_sample_of_the_rows(run):
    view = attention_agreement(run, nodes=4)
    first = view.frame[(view.frame["layer"] == 1) & (view.frame["round"] == 0)]
    assert first["neighbours"].notna().sum() <= 4
    assert first["all"].notna().all()


def test_gat_has_round_zero_alone(gat_run):
    view = attention_agreement(gat_run)
    assert set(view.frame["round"]) == {0}
    assert [trace.type for trace in view.figure.data] == ["bar", "bar"]
    first = view.frame[view.frame["layer"] == 1]
    assert view.figure.data[0].y[0] == pytest.approx(100 * first["neighbours"].mean())
    assert torch.isfinite(torch.tensor(view.frame["all"].to_numpy())).all()
