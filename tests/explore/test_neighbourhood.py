import numpy as np
import pytest

from cagat import explore
from cagat.errors import ConfigError, DatasetError


@pytest.mark.parametrize(("head", "rounds"), [(None, None), (2, 1), (1, 0)])
def test_neighbourhood(run, head, rounds):
    names = list(run.problem.graph.node_names)
    name = names[9]
    view = explore.neighbourhood(run, name, head=head, rounds=rounds)
    rows = run.model.attention(*run.inputs(run.problem.graph), nodes=9, rounds=rounds)[0]
    for row in view.frame.itertuples():
        G, S = (values[0, :, names.index(row.node)] for values in (rows.G, rows.S))
        pick = slice(None) if head is None else head - 1
        assert pytest.approx(float(G[pick].mean()), abs=1e-6) == row.G
        assert pytest.approx(float(S[pick].mean()), abs=1e-6) == row.S
        assert row.difference == pytest.approx(row.S - row.G, abs=1e-6)
    assert (~view.frame["edge"]).sum() == (0 if rounds == 0 else 6)
    assert name in set(view.frame["node"])
    assert view.frame["S"].is_monotonic_decreasing
    assert view.figure.data


@pytest.mark.parametrize(
    ("rounds", "title"),
    [(None, "S: after round 2 of 2"), (1, "S: after round 1 of 2"), (0, "S: not begun, so still G")],
)
def test_neighbourhood_says_which_round(run, rounds, title):
    view = explore.neighbourhood(run, "<i>7</i>", rounds=rounds)
    assert [note.text for note in view.figure.layout.annotations] == ["G: before diffusion", title]
    # The caption is text, and no markup.
    assert "the more <i>7</i> attends" in view.caption
    assert "Rows of S need not sum to 1." in view.caption


def test_rows_of_S_need_not_sum_to_1(run):
    rows = run.model.attention(*run.inputs(run.problem.graph), nodes=9)[0]
    np.testing.assert_allclose(rows.G.sum(dim=-1), 1, rtol=1e-5)
    assert (rows.S.sum(dim=-1) - 1).abs().max() > 1e-3


def test_neighbourhood_without_context(gat_run):
    view = explore.neighbourhood(gat_run, 9, layer=2)
    frame = view.frame
    assert "Rows of S" not in view.caption
    assert (frame["G"] == frame["S"]).all()
    assert frame["edge"].all()


def test_what_is_not_there(run, gcn_run):
    with pytest.raises(DatasetError, match="no node called 'nobody'; its first ones are called"):
        explore.neighbourhood(run, "nobody")
    with pytest.raises(DatasetError, match="no node 60: its nodes are numbered from 0 to 59"):
        explore.neighbourhood(run, 60)
    with pytest.raises(ConfigError, match="attention in layer 1, 2, but layer 3"):
        explore.neighbourhood(run, 0, layer=3)
    with pytest.raises(ConfigError, match="the heads 1 to 3, but head 4"):
        explore.neighbourhood(run, 0, head=4)
    with pytest.raises(ConfigError, match="the rounds 0 to 2, but round 3"):
        explore.neighbourhood(run, 0, rounds=3)
    with pytest.raises(explore.NoAttentionError):
        explore.neighbourhood(gcn_run, 0)
