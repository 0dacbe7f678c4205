"""All nodes in the plane."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from cagat.errors import ConfigError
from cagat.explore.layout import layout
from cagat.explore.subject import AnyRun, Subject
from cagat.explore.view import View, plain, styled
from cagat.style import colour, symbol

COLOURINGS = ("class", "predicted", "right", "split")
UNKNOWN = "unlabelled"


def embedding(run: AnyRun | Subject, colour_by: str = "class", seed: int = 0) -> View:
    """The hidden representation of all nodes in two dimensions, by t-SNE.

    The frame has a row a node: `node`, `x`, `y`, `class`, `predicted`, `right`, `split`, `probability`.

    Args:
        run: A run, or its directory.
        colour_by: `class`, `predicted`, `right` or `split`.
        seed: Of t-SNE.

    Raises:
        ConfigError: Nodes cannot be coloured by that.
    """
    if colour_by not in COLOURINGS:
        raise ConfigError(f"colour_by must be one of {', '.join(COLOURINGS)}, but is {colour_by!r}.")
    frame = node_frame(Subject.of(run), seed)
    figure = go.Figure()
    for number, (name, part) in enumerate(frame.groupby(colour_by)):
        marker = {"color": colour(number), "symbol": symbol(number), "size": 6, "opacity": 0.8}
        names = [plain(node) for node in part["node"]]
        figure.add_scatter(x=part["x"], y=part["y"], mode="markers", name=plain(name), text=names, marker=marker)
    styled(figure, height=560)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    return View(figure, frame, "Each point is a node; nodes that the model sees as alike lie together.")


def node_frame(subject: Subject, seed: int = 0) -> pd.DataFrame:
    """Everything that is known of each node, and its place."""
    places = layout(subject.run.embed().vectors.detach().numpy(), seed)
    names = [*subject.classes, UNKNOWN]
    labels, predicted = subject.labels, subject.predicted
    right = np.where(labels < 0, "unknown", np.where(labels == predicted, "right", "wrong"))
    return pd.DataFrame(
        {
            "node": subject.names,
            "x": places[:, 0],
            "y": places[:, 1],
            "class": [names[label] for label in labels],
            "predicted": [names[label] for label in predicted],
            "right": right,
            "split": [part or "none" for part in subject.parts],
            "probability": subject.probabilities.max(axis=1),
        }
    )
