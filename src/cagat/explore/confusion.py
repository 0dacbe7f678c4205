"""Which classes are taken for which."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cagat.explore.subject import AnyRun, Subject
from cagat.explore.view import View, plain, styled


def confusion(run: AnyRun | Subject) -> View:
    """The test nodes by their class (rows) and the predicted one (columns), as numbers of nodes."""
    subject = Subject.of(run)
    classes, tests = subject.classes, subject.split.test.numpy()
    tests = tests[subject.labels[tests] >= 0]
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (subject.labels[tests], subject.predicted[tests]), 1)
    frame = pd.DataFrame(counts, index=pd.Index(classes, name="class"), columns=pd.Index(classes, name="predicted"))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [plain(name) for name in classes]
    # By position, not by name: names that are cut to the same text would be one class to plotly.
    places = list(range(len(classes)))
    figure = go.Figure(
        go.Heatmap(
            z=(100 * shares).round(1),
            x=places,
            y=places,
            customdata=[[(name, other) for other in names] for name in names],
            text=counts,
            texttemplate="%{text}",
            colorscale=[[0, "#ffffff"], [1, "#0072B2"]],
            zmin=0,
            zmax=100,
            showscale=False,
            hovertemplate="%{customdata[0]} taken for %{customdata[1]}: %{text} nodes, %{z} % of the class"
            "<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    styled(figure, x="predicted", y="class", height=max(380, 28 * len(classes) + 160))
    ticks = {"type": "linear", "tickvals": places, "ticktext": [_short(name) for name in classes], "ticks": ""}
    figure.update_yaxes(autorange="reversed", **ticks)
    figure.update_xaxes(**ticks)
    right = float(np.trace(counts) / max(counts.sum(), 1))
    caption = (
        f"Test nodes: {100 * right:.1f} % of {counts.sum()} are right, on the diagonal. Look for dark squares off it: "
        "classes that are taken for each other."
    )
    return View(figure, frame, caption)


def _short(name: str, length: int = 22) -> str:
    return plain(name if len(name) <= length else name[: length - 1] + "…")
