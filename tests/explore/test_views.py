"""Pictures and frames for Python and Jupyter."""

import re
import shutil

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from cagat import explore
from cagat.errors import ConfigError, DatasetError
from cagat.explore.layout import layout
from cagat.explore.subject import Subject


def test_embedding(run):
    view = explore.embedding(run.directory.path, colour_by="right")
    assert len(view.frame) == 60
    evaluation = run.evaluate()
    tests = view.frame[view.frame["split"] == "test"]
    assert (tests["right"] == "right").mean() == pytest.approx(evaluation.accuracy["test"])
    assert set(view.frame.loc[57:, "class"]) == {"unlabelled"}
    # Names are shown as they are, never as markup.
    assert "&lt;i&gt;0&lt;/i&gt;" in {text for trace in view.figure.data for text in trace.text}
    with pytest.raises(ConfigError, match="colour_by must be one of class, predicted, right, split, but is 'degree'"):
        explore.embedding(run, colour_by="degree")


def test_alike_lie_together():
    random = np.random.default_rng(0)
    places = layout(np.repeat([[0.0] * 40, [9.0] * 40], 40, axis=0) + random.normal(size=(80, 40)).astype(np.float32))
    inside = np.linalg.norm(places[:40] - places[:40].mean(axis=0), axis=1).mean()
    between = np.linalg.norm(places[:40].mean(axis=0) - places[40:].mean(axis=0))
    assert between > 2 * inside


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (5, 1), (6, 2)])
def test_places_of_very_few_nodes(shape):
    assert layout(np.ones(shape, dtype=np.float32)).shape == (shape[0], 2)


@pytest.mark.parametrize(("head", "rounds"), [(None, None), (2, 1), (1, 0)])
def test_neighbourhood(run, head, rounds):
    name = Subject.of(run).names[9]
    view = explore.neighbourhood(run, name, head=head, rounds=rounds)
    rows = run.model.attention(*run.inputs(run.problem.graph), nodes=9, rounds=rounds)[0]
    names = Subject.of(run).names
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
        explore.entropy(gcn_run)


def test_entropy(run):
    view = explore.entropy(run, layer=2)
    assert set(view.frame.columns) == {"node", "degree", "G", "S"}
    # Attention on the node and its neighbours cannot be spread wider than evenly; S reaches further.
    assert (view.frame["G"] <= np.log2(view.frame["degree"] + 1) + 1e-5).all()
    assert (view.frame["S"] > view.frame["G"]).mean() > 0.9


def test_confusion(run):
    view = explore.confusion(run)
    counts = view.frame.to_numpy()
    assert counts.sum() == len(run.problem.split.test)
    assert np.trace(counts) / counts.sum() == pytest.approx(run.evaluate().accuracy["test"])


def test_confusion_keeps_classes_whose_names_begin_alike(run, monkeypatch):
    names = [f"Department of Computer <{topic}>" for topic in ("Science", "Vision", "Graphics")]
    monkeypatch.setattr(Subject, "classes", names)
    figure = explore.confusion(run).figure
    (squares,) = figure.data
    for along, axis in ((squares.x, figure.layout.xaxis), (squares.y, figure.layout.yaxis)):
        assert len(set(along)) == 3
        assert tuple(axis.tickvals) == tuple(along)
        assert set(axis.ticktext) == {"Department of Compute…"}
    # The whole names are told on the spot.
    assert tuple(squares.customdata[0][2]) == tuple(
        f"Department of Computer &lt;{topic}&gt;" for topic in ("Science", "Graphics")
    )
    assert squares.hovertemplate.startswith("%{customdata[0]} taken for %{customdata[1]}")


def test_jupyter_shows_the_picture(run):
    view = explore.confusion(run)
    # With this method, Jupyter would not ask for HTML; plotly's own needs nbformat.
    assert not hasattr(view, "_ipython_display_")
    text = view._repr_html_()
    assert text.startswith("<div")
    assert text.count("Plotly.newPlot(") == 1
    assert get_plotlyjs() in text
    assert not re.search(r"<script[^>]*\ssrc=", text.replace(get_plotlyjs(), ""))
    assert "taken for" in text
    assert "window.harmed = 1</script>" not in text


def test_course(run):
    view = explore.course(run)
    assert list(view.frame.columns) == ["epoch", "loss", "val_loss", "val_accuracy"]
    assert len(view.frame) == 5
    best = int(view.frame["val_loss"].idxmin()) + 1
    assert f"lowest in epoch {best} of 5" in view.caption


def test_course_without_a_validation_loss(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run.directory.path, copy)
    lines = [f'{{"epoch": {number}, "loss": NaN, "val_loss": NaN, "val_accuracy": NaN}}' for number in (1, 2)]
    (copy / "metrics.jsonl").write_text("\n".join(lines))
    view = explore.course(copy)
    assert view.caption == "No validation loss of the 2 epochs is a number, so that none of them is the best."
    assert not view.figure.layout.shapes, "there is no line where the best epoch would be"
