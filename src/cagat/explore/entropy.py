"""How widely attention is spread."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch

from cagat.explore.attention_layers import AttentionLayer
from cagat.explore.chosen_nodes import chosen_nodes
from cagat.explore.shown_rows import ShownRows
from cagat.explore.subject import AnyRun, Subject
from cagat.explore.view import View, plain, styled
from cagat.style import BLUE, GREY, ORANGE

CAPTION = (
    "Above the line lies attention that reaches further than the node's own neighbours, below it attention that "
    "prefers some of them. The line is attention that is the same for the node and all its neighbours."
)


def entropy(run: AnyRun | Subject, nodes: int | None = None, layer: int | None = None) -> View:
    """The entropy of attention, in bits, against the number of neighbours; of G, and of S after all rounds.

    The frame has a row a node: `node`, `degree`, `G` and, for a model with context, `S`. A row of attention is scaled
    to sum 1 first; entries below 0, which S may have, are left out. It is the mean over the heads.

    Args:
        run: A run, or its directory.
        nodes: Of how many test nodes (default: all on graphs of at most 3000 nodes, else 400).
        layer: Which layer, from 1 (default: the first that aggregates).

    Raises:
        NoAttentionError: The model has no attention.
    """
    subject = Subject.of(run)
    chosen = torch.from_numpy(chosen_nodes(subject, nodes, tested=True))
    found = subject.layer(layer)
    return entropy_view(subject, found, ShownRows.of(found, chosen))


def entropy_view(subject: Subject, layer: AttentionLayer, rows: ShownRows) -> View:
    """As :func:`entropy`, from rows that are known."""
    degrees = subject.degrees[rows.nodes]
    columns = {"node": [subject.names[node] for node in rows.nodes], "degree": degrees, "G": rows.entropy[0]}
    if layer.rounds:
        columns["S"] = rows.entropy[-1]
    frame = pd.DataFrame(columns)
    figure = go.Figure()
    # Nodes of the same degree are moved apart a little; the frame has the true degrees.
    shaken = degrees * np.exp(np.random.default_rng(0).uniform(-0.06, 0.06, len(degrees)))
    for name, tint, mark in (("G", BLUE, "circle"), ("S", ORANGE, "diamond")):
        if name in frame:
            figure.add_scatter(
                x=np.maximum(shaken, 0.5).round(3),
                y=frame[name].round(3),
                mode="markers",
                name="G, before diffusion" if name == "G" else "S, after all rounds",
                marker={"color": tint, "symbol": mark, "size": 5, "opacity": 0.55},
                text=[plain(node) for node in frame["node"]],
                hovertemplate="%{text}: %{y:.2f} bits",
            )
    line = np.unique(degrees)
    figure.add_scatter(
        x=np.maximum(line, 0.5),
        y=np.log2(line + 1).round(3),
        mode="lines",
        line={"color": GREY, "dash": "dot"},
        name="the same for all",
    )
    styled(figure, x="neighbours", y=f"entropy of attention in layer {layer.number}, bits", height=400)
    figure.update_xaxes(type="log", dtick=1)
    return View(figure, frame, CAPTION)
