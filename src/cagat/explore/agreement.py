"""Does attention fall on nodes of the same class? Before diffusion, and after."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
import torch

from cagat.errors import DatasetError
from cagat.explore.attention_layers import AttentionLayer
from cagat.explore.chosen_nodes import chosen_nodes
from cagat.explore.shown_rows import ShownRows
from cagat.explore.subject import AnyRun, Floats, Integers, Subject
from cagat.explore.view import View, styled
from cagat.style import GREY, colour

CAPTION = "If context helps, the solid lines rise from G to S, and lie above the dotted one."
CAPTION_OF_G = "Attention that tells classes apart puts more on neighbours of the same class than counting does."
COUNTED = (
    "Solid, neighbours: of a test node's attention to its neighbours, itself left out, the share that goes to those of "
    "its own class; over {known} test nodes. Dashed, all nodes: of its attention to all nodes, itself included, the "
    "share that goes to its own class; over all {tests} test nodes, exact. It falls where S reaches far: most of all "
    "nodes are of other classes. Dotted, counted: the share of its neighbours that are of its class, as if all got the "
    "same attention. Each is the mean over the heads and over the nodes, with its 95 % interval; entries of S below 0 "
    "count as they are."
)


def attention_agreement(run: AnyRun | Subject, nodes: int | None = None) -> View:
    """How much of the attention of test nodes falls on nodes of their own class, for G and for S after every round.

    The frame has a row for each test node, layer and round (round 0 is G):

    - `all`: the share of the node's whole row of attention, itself included, that falls on nodes of its own class;
      exact for all test nodes, from one product of S with the classes;
    - `neighbours`: the share of its attention to its neighbours, itself left out, that falls on those of its own class;
      known where the row of S was computed, and not a number elsewhere and for nodes without labelled neighbours;
    - `counted`: the share of its neighbours that are of its own class.

    Each is the mean over the heads.

    Args:
        run: A run, or its directory.
        nodes: For how many test nodes to compute rows of S, drawn at random from all (default: all on graphs of at most
            3000 nodes, else 400).

    Raises:
        NoAttentionError: The model has no attention.
        DatasetError: No test node has a label.
    """
    subject = Subject.of(run)
    layers = subject.layers
    chosen = chosen_nodes(subject, nodes, tested=True)
    return agreement_view(subject, [(layer, ShownRows.of(layer, torch.from_numpy(chosen))) for layer in layers])


def agreement_view(subject: Subject, shown: list[tuple[AttentionLayer, ShownRows]]) -> View:
    """As :func:`attention_agreement`, from rows that are known."""
    tests = _labelled_tests(subject)
    if not len(tests):
        raise DatasetError(f"{subject.graph.name}: no test node has a label, so that there is nothing to agree with.")
    frame = pd.concat([_of_layer(subject, layer, rows, tests) for layer, rows in shown], ignore_index=True)
    known = int(frame.loc[frame["layer"] == frame["layer"].min(), ["node", "neighbours"]].dropna()["node"].nunique())
    details = COUNTED.format(known=known, tests=len(tests))
    if frame["round"].max() == 0:
        return View(_drawn_bars(frame), frame, CAPTION_OF_G, details)
    return View(_drawn(frame), frame, f"{change(frame)} {CAPTION}".strip(), details)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean, half of the 95 % interval (Student's t) and number of nodes, by layer, round and measure."""
    from scipy.stats import t

    long = frame.melt(["layer", "round"], ["all", "neighbours", "counted"], "measure", "share").dropna()
    grouped = long.groupby(["layer", "round", "measure"])["share"]
    table = grouped.agg(["mean", "std", "count"]).reset_index()
    freedom = np.maximum(table["count"] - 1, 1)
    table["half"] = t.ppf(0.975, freedom) * table["std"].fillna(0) / np.sqrt(table["count"])
    return table.drop(columns="std")


def change(frame: pd.DataFrame) -> str:
    """By how many points S differs from G in the last layer, node by node, with its 95 % interval, as a sentence."""
    from scipy.stats import t

    last = frame[frame["layer"] == frame["layer"].max()]
    before = last[last["round"] == 0].set_index("node")["neighbours"]
    after = last[last["round"] == last["round"].max()].set_index("node")["neighbours"]
    points = 100 * (after - before).dropna()
    if len(points) < 2:
        return ""
    half = float(t.ppf(0.975, len(points) - 1)) * float(points.std()) / math.sqrt(len(points))
    mean = float(points.mean())
    return (
        f"In the last layer, S puts {mean:+.1f} points [{mean - half:+.1f}, {mean + half:+.1f}] of the attention among "
        "neighbours on the node's own class, compared with G."
    )


def _labelled_tests(subject: Subject) -> Integers:
    tests = subject.split.test.numpy()
    return np.sort(tests[subject.labels[tests] >= 0])


def _of_layer(subject: Subject, layer: AttentionLayer, rows: ShownRows, tests: Integers) -> pd.DataFrame:
    counted = _on_edges(subject, rows, np.ones((1, len(rows.neighbours), 1)))[0]
    on_edges = _on_edges(subject, rows, rows.on_edges)
    known = {int(node): place for place, node in enumerate(rows.nodes)}
    place = np.array([known.get(int(node), -1) for node in tests])
    columns = {
        "node": [subject.names[node] for node in tests],
        "layer": layer.number,
        "counted": np.where(place >= 0, counted[place], np.nan),
    }
    frames = [
        pd.DataFrame(
            columns
            | {
                "round": done,
                "all": _of_all(subject, layer, done)[tests],
                "neighbours": np.where(place >= 0, on_edges[done][place], np.nan),
            }
        )
        for done in range(1 + len(layer.rounds))
    ]
    return pd.concat(frames, ignore_index=True)


def _of_all(subject: Subject, layer: AttentionLayer, done: int) -> Floats:
    """Of each node's row, the share on its own class: S times the classes, one column each, without the rows."""
    labels = torch.from_numpy(subject.labels)
    columns = len(subject.classes) + 1
    # The last column is for nodes whose class is not known.
    V = torch.nn.functional.one_hot(torch.where(labels < 0, columns - 1, labels), columns)
    with torch.no_grad():
        mass = layer.after(done).matmul(V[:, None, :].to(layer.G.dtype)).double()
    own = mass.gather(2, labels.clamp(min=0)[:, None, None].expand(-1, layer.heads, 1)).squeeze(2)
    return np.asarray((own / mass.sum(dim=2)).mean(dim=1).numpy())


def _on_edges(subject: Subject, rows: ShownRows, values: npt.NDArray[Any]) -> Floats:
    """Of the values at each node's neighbours, itself left out, the share on its own class; shape (rounds, nodes)."""
    owner = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.offsets))
    others = (rows.neighbours != rows.nodes[owner]) & (subject.labels[rows.neighbours] >= 0)
    same = others & (subject.labels[rows.neighbours] == subject.labels[rows.nodes[owner]])
    shares = np.full((len(values), len(rows.nodes)), np.nan)
    for number, heads in enumerate(values):
        total, own = (np.zeros((len(rows.nodes), heads.shape[1])) for _ in range(2))
        np.add.at(total, owner[others], heads[others])
        np.add.at(own, owner[same], heads[same])
        some = (total > 0).all(axis=1)
        shares[number, some] = (own[some] / total[some]).mean(axis=1)
    return shares


_NAMES = {"neighbours": "neighbours", "all": "all nodes", "counted": "counted"}


def _drawn_bars(frame: pd.DataFrame) -> go.Figure:
    """Of a model without rounds."""
    figure = go.Figure()
    for layer, part in summary(frame).groupby("layer"):
        part = part.set_index("measure").loc[list(_NAMES)]
        figure.add_bar(
            x=list(_NAMES.values()),
            y=100 * part["mean"],
            error_y={"array": 100 * part["half"]},
            name=f"layer {layer}",
            marker_color=colour(int(layer) - 1),
            hovertemplate="%{x}: %{y:.1f} %",
        )
    return styled(figure, y="attention on the same class, %", height=400)


def _drawn(frame: pd.DataFrame) -> go.Figure:
    figure, table = go.Figure(), summary(frame)
    dashes = {"neighbours": "solid", "all": "dash", "counted": "dot"}
    groups = dict(list(table.groupby(["measure", "layer"])))
    # What is counted does not depend on the layer.
    drawn = [key for measure in dashes for key in groups if key[0] == measure and (measure != "counted" or key[1] == 1)]
    for measure, layer in drawn:
        part = groups[measure, layer]
        name = _NAMES[measure]
        tint = GREY if measure == "counted" else colour(int(layer) - 1)
        figure.add_scatter(
            x=["G" if done == 0 else f"S {done}" for done in part["round"]],
            y=100 * part["mean"],
            error_y={"array": 100 * part["half"], "color": tint, "thickness": 1.2, "width": 3},
            mode="lines+markers",
            line={"dash": dashes[measure], "color": tint},
            name=name if measure == "counted" else f"layer {layer}, {name}",
            hovertemplate="%{x}: %{y:.1f} %",
        )
    return styled(figure, x="G, and S after each round", y="attention on the same class, %", height=400)
