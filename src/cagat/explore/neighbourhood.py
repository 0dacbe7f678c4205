"""The neighbourhood of a node before and after diffusion."""

import numpy as np
import pandas as pd
from plotly.subplots import make_subplots

from cagat.errors import ConfigError
from cagat.explore.explored_run import AnyRun, AttentionLayer, ExploredRun, RowSummary, View, plain, styled
from cagat.style import colour, symbol

DRAWN = 24
"""How many nodes around a node are drawn at most; the frame has all."""


def neighbourhood(
    run: AnyRun, node: str | int, *, layer: int | None = None, head: int | None = None, rounds: int | None = None
) -> View:
    """A node's attention to its neighbours, before diffusion (G) and after (S), and the strongest pairs off the edges.

    The frame has one row per neighbour, by falling S: `node`, `class`, `edge` (whether there is one), `G`, `S` and
    `difference`. The node itself is among them: it has a self-loop. Of a model without context, S is G.

    Args:
        run: A run, or its directory.
        node: Its name, or its number.
        layer: Which layer, from 1 (default: the first that aggregates).
        head: Which head, from 1 (default: the mean over the heads).
        rounds: After how many rounds (default: all).
    """
    explored = ExploredRun.of(run)
    number, found = explored.node(node), explored.layer(layer)
    last = len(found.rounds)
    if head is not None and not 1 <= head <= found.G.heads:
        raise ConfigError(f"Layer {found.number} has the heads 1 to {found.G.heads}, but head {head} was asked for.")
    if rounds is not None and not 0 <= rounds <= last:
        raise ConfigError(f"The layer has the rounds 0 to {last}, but round {rounds} was asked for.")
    done = last if rounds is None else rounds
    titles = {"G": "G: before diffusion"}
    if last:
        titles["S"] = f"S: after round {done} of {last}" if done else "S: not begun, so still G"
    return _view(explored, _frame(explored, found, number, head, done), explored.names[number], titles)


def _frame(run: ExploredRun, layer: AttentionLayer, node: int, head: int | None, done: int) -> pd.DataFrame:
    rows = RowSummary.of(layer, np.array([node]))
    heads = slice(None) if head is None else slice(head - 1, head)
    everyone = rows.neighbours
    before, after = (rows.on_edges[number][:, heads].mean(axis=1) for number in (0, done))
    if done > 0:
        at = (done - 1, -1 if head is None else head - 1, 0)  # The last column is the mean over the heads.
        others, values = (array[at][rows.others[at] >= 0] for array in (rows.others, rows.other_values))
        everyone, before, after = np.append(everyone, others), np.append(before, 0 * values), np.append(after, values)
    frame = pd.DataFrame(
        {
            "node": [run.names[other] for other in everyone],
            "class": [run.classes[run.labels[other]] for other in everyone],
            "edge": np.arange(len(everyone)) < len(rows.neighbours),
            "G": before,
            "S": after,
            "difference": after - before,
        }
    )
    return frame.sort_values("S", ascending=False, kind="stable", ignore_index=True)


def _view(run: ExploredRun, frame: pd.DataFrame, name: str, titles: dict[str, str]) -> View:
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=list(titles.values()), horizontal_spacing=0.02)
    # The node itself comes first, in the centre.
    around = frame[frame["node"] != name].head(DRAWN)
    drawn = pd.concat([frame[frame["node"] == name], around], ignore_index=True)
    angles = np.linspace(0, 2 * np.pi, len(around), endpoint=False) + np.pi / 2
    radius = np.where(around["edge"], 1.0, 1.35)
    x, y = np.append(0, radius * np.cos(angles)), np.append(0, radius * np.sin(angles))
    kinds, hollows = [run.classes.index(label) for label in drawn["class"]], np.where(drawn["edge"], "", "-open")
    largest = max(float(frame[list(titles)].to_numpy().max()), 1e-9)
    for column, key in enumerate(titles, start=1):
        for index, (value, edge) in enumerate(zip(drawn[key], drawn["edge"], strict=True)):
            if index == 0 or value <= 0 or (key == "G" and not edge):
                continue
            line = {"width": 0.5 + 11 * value / largest, "color": "#8a93a0", "dash": "solid" if edge else "dot"}
            ends = {"x": [0, x[index]], "y": [0, y[index]]}
            figure.add_scatter(**ends, mode="lines", line=line, hoverinfo="skip", row=1, col=column)
        names = [plain(node) for node in drawn["node"]]
        figure.add_scatter(
            x=x,
            y=y,
            mode="markers+text",
            text=names,
            textposition="top center",
            customdata=drawn[key],
            hovertext=[f"{node}<br>{plain(label)}" for node, label in zip(names, drawn["class"], strict=True)],
            hovertemplate="%{hovertext}<br>" + key + " = %{customdata:.3f}<extra></extra>",
            marker={
                "size": [22] + [14] * len(around),
                "color": [colour(kind) for kind in kinds],
                "symbol": [symbol(kind) + hollow for kind, hollow in zip(kinds, hollows, strict=True)],
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
    return View(figure, frame, caption + (" Rows of S need not sum to 1." if "S" in titles else ""))
