"""The neighbourhood of a node before and after diffusion."""

import numpy as np
import pandas as pd
import torch
from plotly.subplots import make_subplots

from cagat.errors import ConfigError
from cagat.explore.attention_layers import AttentionLayer
from cagat.explore.embedding import UNKNOWN
from cagat.explore.shown_rows import ShownRows
from cagat.explore.subject import AnyRun, Subject
from cagat.explore.view import View, plain, styled
from cagat.style import colour, symbol

DRAWN = 24
"""How many nodes around a node are drawn at most; the frame has all."""


def neighbourhood(
    run: AnyRun | Subject,
    node: str | int,
    *,
    layer: int | None = None,
    head: int | None = None,
    rounds: int | None = None,
) -> View:
    """A node's attention to its neighbours, before diffusion (G) and after (S), and the strongest pairs off the edges.

    The frame has a row a neighbour, by falling S: `node`, `class`, `edge` (whether there is one), `G`, `S` and
    `difference`. The node itself is among them: it has a self-loop. Of a model without context, S is G.

    Args:
        run: A run, or its directory.
        node: Its name, or its number.
        layer: Which layer, from 1 (default: the first that aggregates).
        head: Which head, from 1 (default: the mean over the heads).
        rounds: After how many rounds (default: all).

    Raises:
        NoAttentionError: The model has no attention.
        DatasetError: There is no such node.
        ConfigError: There is no such layer, head or round.
    """
    subject = Subject.of(run)
    number, found = subject.node(node), subject.layer(layer)
    last = len(found.rounds)
    if head is not None and not 1 <= head <= found.heads:
        raise ConfigError(f"Layer {found.number} has the heads 1 to {found.heads}, but head {head} was asked for.")
    if rounds is not None and not 0 <= rounds <= last:
        raise ConfigError(f"The layer has the rounds 0 to {last}, but round {rounds} was asked for.")
    done = last if rounds is None else rounds
    titles = ["G: before diffusion"]
    if last:
        titles.append(f"S: after round {done} of {last}" if done else "S: not begun, so still G")
    return _view(subject, _frame(subject, found, number, head, done), number, titles)


def _frame(subject: Subject, layer: AttentionLayer, node: int, head: int | None, done: int) -> pd.DataFrame:
    rows = ShownRows.of(layer, torch.tensor([node]))
    pick = slice(None) if head is None else slice(head - 1, head)
    before, after = (rows.on_edges[number][:, pick].mean(axis=1) for number in (0, done))
    nodes, edge = rows.neighbours, np.ones(len(rows.neighbours), dtype=bool)
    if done > 0:
        column = (head or layer.heads + (layer.heads > 1)) - 1
        others = rows.others[done - 1, column, 0]
        some = others >= 0
        nodes = np.concatenate([nodes, others[some]])
        before = np.concatenate([before, np.zeros(some.sum(), dtype=before.dtype)])
        after = np.concatenate([after, rows.other_values[done - 1, column, 0][some]])
        edge = np.concatenate([edge, np.zeros(some.sum(), dtype=bool)])
    names = [*subject.classes, UNKNOWN]
    frame = pd.DataFrame(
        {
            "node": [subject.names[other] for other in nodes],
            "class": [names[subject.labels[other]] for other in nodes],
            "edge": edge,
            "G": before,
            "S": after,
            "difference": after - before,
        }
    )
    return frame.sort_values("S", ascending=False, kind="stable", ignore_index=True)


def _view(subject: Subject, frame: pd.DataFrame, node: int, titles: list[str]) -> View:
    name, panels = subject.names[node], ("G", "S")[: len(titles)]
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=titles, horizontal_spacing=0.02)
    around = frame[frame["node"] != name].head(DRAWN)
    angles = np.linspace(0, 2 * np.pi, len(around), endpoint=False) + np.pi / 2
    radius = np.where(around["edge"], 1.0, 1.35)
    x, y = radius * np.cos(angles), radius * np.sin(angles)
    classes = {label: number for number, label in enumerate([*subject.classes, UNKNOWN])}
    centre = frame[frame["node"] == name].iloc[0]
    largest = max(float(frame[list(panels)].to_numpy().max()), 1e-9)
    for column, key in enumerate(panels, start=1):
        for place, row in enumerate(around.itertuples()):
            value = float(getattr(row, key))
            if value <= 0 or (key == "G" and not row.edge):
                continue
            line = {"width": 0.5 + 11 * value / largest, "color": "#8a93a0", "dash": "solid" if row.edge else "dot"}
            figure.add_scatter(
                x=[0, x[place]], y=[0, y[place]], mode="lines", line=line, hoverinfo="skip", row=1, col=column
            )
        names = [f"{plain(row.node)}<br>{plain(row[2])}" for row in around.itertuples()]
        figure.add_scatter(
            x=[0, *x],
            y=[0, *y],
            mode="markers+text",
            text=[plain(name), *(plain(other) for other in around["node"])],
            textposition="top center",
            customdata=[float(centre[key]), *around[key]],
            hovertext=[plain(name), *names],
            hovertemplate="%{hovertext}<br>" + key + " = %{customdata:.3f}<extra></extra>",
            marker={
                "size": [22, *([14] * len(around))],
                "color": [colour(classes[label]) for label in (centre["class"], *around["class"])],
                "symbol": [
                    symbol(classes[label]) + ("" if edge else "-open")
                    for label, edge in [(centre["class"], True), *zip(around["class"], around["edge"], strict=True)]
                ],
                "line": {"color": "#fff", "width": 1.5},
            },
            row=1,
            col=column,
        )
    styled(figure, height=440)
    figure.update_layout(showlegend=False, margin={"t": 32})
    figure.update_xaxes(visible=False, range=[-1.7, 1.7])
    figure.update_yaxes(visible=False, range=[-1.7, 1.7])
    caption = (
        f"The thicker the line, the more {name} attends to the node; dotted lines and hollow marks are pairs "
        "without an edge, which only S reaches. Colours and shapes are classes."
    )
    if "S" in panels:
        caption += " Rows of S need not sum to 1."
    return View(figure, frame, caption)
