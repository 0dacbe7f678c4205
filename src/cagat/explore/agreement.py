"""Does attention fall on nodes of the same class? Before diffusion, and after."""

import math
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from cagat.diffusion import AttentionOperator
from cagat.errors import DatasetError
from cagat.explore.explored_run import AnyRun, ExploredRun, Floats, RowSummary, View, styled
from cagat.style import BLUE, GREY, ORANGE, colour

CAPTION = "If context helps, the solid line of a layer rises from G to S, and lies above the dotted one."
CAPTION_OF_G = "Attention that tells classes apart puts more on neighbours of the same class than counting does."
COUNTED = (
    "Solid, neighbours: of a {kind} node's attention to its neighbours, itself left out, the share that goes to those "
    "of its own class; over {known} {kind} nodes. Dashed, all nodes: of its attention to all nodes, itself included, "
    "the share that goes to its own class; over all {tests} {kind} nodes, exact. It falls where S reaches far: most of "
    "all nodes are of other classes. Dotted, counted: the share of its neighbours that are of its class, as if all got "
    "the same attention. Each is the mean over the heads and over the nodes, with its 95 % interval; entries of S "
    "below 0 count as they are."
)

_MEASURES = {"neighbours": ("neighbours", "solid"), "all": ("all nodes", "dash"), "counted": ("counted", "dot")}


def attention_agreement(run: AnyRun, nodes: int | None = None) -> View:
    """How much of the attention of test nodes falls on nodes of their own class, for G and for S after every round.

    The frame has a row for each test node, layer and round (round 0 is G), averaged over the heads:

    - `all`: the share of the node's whole row, itself included, that falls on nodes of its own class;
    - `neighbours`: the share of its attention to its neighbours, itself left out, that falls on those of its own class;
      NaN where the row of S was not computed, and for nodes without labelled neighbours;
    - `counted`: the share of its neighbours that are of its own class.

    Args:
        run: A run, or its directory.
        nodes: For how many test nodes to compute rows of S (default: all on graphs of at most 3000 nodes, else 400).
    """
    explored = ExploredRun.of(run)
    chosen = explored.sample(nodes, tests_only=True)
    return agreement_view(explored, [RowSummary.of(layer, chosen) for layer in explored.layers])


def agreement_view(run: ExploredRun, layers: list[RowSummary]) -> View:
    """As :func:`attention_agreement`, from rows that are known."""
    if not len(run.tests):
        raise DatasetError(f"{run.graph.name}: no test node has a label, so that there is nothing to agree with.")
    frame = pd.concat([_layer_frame(run, rows) for rows in layers], ignore_index=True)
    known = int(frame.loc[frame["layer"] == frame["layer"].min(), ["node", "neighbours"]].dropna()["node"].nunique())
    details = COUNTED.format(known=known, tests=len(run.tests), kind=run.judged)
    if frame["round"].max() == 0:
        return View(_bars(frame), frame, CAPTION_OF_G, details)
    return View(_lines(frame), frame, f"{change(frame)} {CAPTION}".strip(), details)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean, half of the 95 % interval (Student's t) and number of nodes, by layer, round and measure."""
    long = frame.melt(["layer", "round"], list(_MEASURES), "measure", "share").dropna()
    table = long.groupby(["layer", "round", "measure"])["share"].agg(["mean", "std", "count"]).reset_index()
    table["half"] = _half_interval(table["std"].fillna(0), table["count"])
    return table.drop(columns="std")


def change(frame: pd.DataFrame) -> str:
    """By how many points S differs from G in the last layer, node by node, with its 95 % interval, as a sentence."""
    last = frame[frame["layer"] == frame["layer"].max()]
    before = last[last["round"] == 0].set_index("node")["neighbours"]
    after = last[last["round"] == last["round"].max()].set_index("node")["neighbours"]
    points = 100 * (after - before).dropna()
    if len(points) < 2:
        return ""
    mean, half = points.mean(), _half_interval(points.std(), len(points))
    return (
        f"In the last layer, S puts {mean:+.1f} points [{mean - half:+.1f}, {mean + half:+.1f}] of the attention among "
        "neighbours on the node's own class, compared with G."
    )


def _half_interval(deviation: Any, count: Any) -> Any:
    from scipy.special import stdtrit  # Student's quantiles, without all of scipy.stats.

    return stdtrit(np.maximum(count - 1, 1), 0.975) * deviation / np.sqrt(count)


def _layer_frame(run: ExploredRun, rows: RowSummary) -> pd.DataFrame:
    def at_tests(shares: Floats) -> Floats:
        return np.asarray(pd.Series(shares, rows.nodes).reindex(run.tests))

    on_edges = _on_edges(run, rows, rows.on_edges)
    (counted,) = _on_edges(run, rows, np.ones((1, len(rows.neighbours), 1)))
    known = {"node": [run.names[node] for node in run.tests], "layer": rows.layer.number, "counted": at_tests(counted)}
    frames = []
    for done, S in enumerate((rows.layer.G, *rows.layer.rounds)):
        found = {"all": _of_all(run, S)[run.tests], "neighbours": at_tests(on_edges[done])}
        frames.append(pd.DataFrame(known | {"round": done} | found))
    return pd.concat(frames, ignore_index=True)


@torch.no_grad()
def _of_all(run: ExploredRun, S: AttentionOperator) -> Floats:
    """Of each node's row, the share on its own class: S times the classes, one column each, without the rows."""
    labels, columns = torch.from_numpy(run.labels), len(run.classes)
    V = torch.nn.functional.one_hot(torch.where(labels < 0, columns - 1, labels), columns)
    mass = S.matmul(V[:, None, :].to(S.dtype)).double()
    own = mass.gather(2, labels.clamp(min=0)[:, None, None].expand(-1, S.heads, 1)).squeeze(2)
    return np.asarray((own / mass.sum(dim=2)).mean(dim=1).numpy())


def _on_edges(run: ExploredRun, rows: RowSummary, values: Floats) -> Floats:
    """Of the values at each node's neighbours, itself left out, the share on its own class; shape (rounds, nodes)."""
    owner = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.offsets))
    others = (rows.neighbours != rows.nodes[owner]) & (run.labels[rows.neighbours] >= 0)
    same = others & (run.labels[rows.neighbours] == run.labels[rows.nodes[owner]])
    total, own = np.zeros((2, len(rows.nodes), len(values), values.shape[2]))
    for sums, counted in ((total, others), (own, same)):
        np.add.at(sums, owner[counted], values[:, counted].swapaxes(0, 1))
    # Unknown without labelled neighbours, or where they get nothing.
    shares = np.divide(own, total, where=total > 0, out=np.full_like(own, np.nan))
    return np.asarray(shares.mean(axis=2).T)


def _bars(frame: pd.DataFrame) -> go.Figure:
    """Of a model without rounds."""
    figure = go.Figure()
    for layer, part in summary(frame).groupby("layer"):
        part = part.set_index("measure").loc[list(_MEASURES)]
        figure.add_bar(
            x=[name for name, _ in _MEASURES.values()],
            y=100 * part["mean"],
            error_y={"array": 100 * part["half"]},
            name=f"layer {layer}",
            marker_color=colour(int(layer) - 1),
            hovertemplate="%{x}: %{y:.1f} %",
        )
    return styled(figure, y="attention on the same class, %", height=400)


def _lines(frame: pd.DataFrame) -> go.Figure:
    """A picture for each layer, two beside each other."""
    groups = dict(list(summary(frame).groupby(["measure", "layer"])))
    layers = sorted(frame["layer"].unique())
    columns = min(2, len(layers))
    titles = [f"layer {layer}" for layer in layers]
    figure = make_subplots(
        rows=math.ceil(len(layers) / columns),
        cols=columns,
        shared_yaxes=True,
        subplot_titles=titles,
        horizontal_spacing=0.06,
        vertical_spacing=0.12,
    )
    tints = {"neighbours": BLUE, "all": ORANGE, "counted": GREY}
    for number, layer in enumerate(layers):
        for measure, (name, dash) in _MEASURES.items():
            if (measure, layer) not in groups:
                continue
            part, tint = groups[measure, layer], tints[measure]
            figure.add_scatter(
                x=["G" if done == 0 else f"S {done}" for done in part["round"]],
                y=100 * part["mean"],
                error_y={"array": 100 * part["half"], "color": tint, "thickness": 1.2, "width": 3},
                mode="lines+markers",
                line={"dash": dash, "color": tint},
                name=name,
                legendgroup=measure,
                showlegend=number == 0,
                hovertemplate=f"layer {layer}, %{{x}}: %{{y:.1f}} %",
                row=number // columns + 1,
                col=number % columns + 1,
            )
    styled(figure, height=400 * math.ceil(len(layers) / columns))
    figure.update_layout(margin_t=64, legend_y=1.12)
    figure.update_xaxes(title_text="round")
    figure.update_yaxes(title_text="attention on the same class, %", col=1)
    return figure
