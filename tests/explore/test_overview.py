import re
import shutil

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from cagat import explore
from cagat.errors import ConfigError
from cagat.explore.explored_run import ExploredRun
from cagat.explore.overview import layout


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


def test_confusion_keeps_classes_whose_names_begin_alike(run):
    names = [f"Department of Computer <{topic}>" for topic in ("Science", "Vision", "Graphics")]
    explored = ExploredRun.of(run)
    explored.classes = [*names, "unlabelled"]
    figure = explore.confusion(explored).figure
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


def test_training_curves(run):
    view = explore.training_curves(run)
    assert list(view.frame.columns) == ["epoch", "loss", "val_loss", "val_accuracy"]
    assert len(view.frame) == 5
    best = int(view.frame["val_loss"].idxmin()) + 1
    assert f"lowest in epoch {best} of 5" in view.caption


def test_training_curves_without_a_validation_loss(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run.directory.path, copy)
    lines = [f'{{"epoch": {number}, "loss": NaN, "val_loss": NaN, "val_accuracy": NaN}}' for number in (1, 2)]
    (copy / "metrics.jsonl").write_text("\n".join(lines))
    view = explore.training_curves(copy)
    assert view.caption == "No validation loss of the 2 epochs is a number, so that none of them is the best."
    assert not view.figure.layout.shapes, "there is no line where the best epoch would be"
