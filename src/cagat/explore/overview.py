"""Views of the whole run: all nodes in the plane, spread of attention, confused classes, training curves."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cagat.errors import ConfigError
from cagat.explore.explored_run import SUBSETS, AnyRun, ExploredRun, Floats, RowSummary, View, opened, plain, styled
from cagat.style import BLUE, GREY, ORANGE, colour, symbol

COLOURINGS = ("class", "predicted", "right", "split")
FEW_LABELLED = 0.5
"""Below this share of labelled nodes, pictures are coloured by prediction: by class most would be grey."""
SPREAD = (
    "Above the line lies attention that reaches further than the node's own neighbours, below it attention that "
    "prefers some of them. The line is attention that is the same for the node and all its neighbours."
)

_COMPONENTS = 30
_TSNE_STEPS = 500
_TSNE_UP_TO = 50_000


def embedding(run: AnyRun, colour_by: str | None = None, seed: int = 0) -> View:
    """The hidden representation of all nodes in two dimensions, by t-SNE.

    The frame has one row per node: `node`, `x`, `y`, `class`, `predicted`, `right`, `split`, `probability`.

    Args:
        run: A run, or its directory.
        colour_by: `class`, `predicted`, `right` or `split` (default: `class`, or `predicted` where fewer than half of
            the nodes have a label).
        seed: Of t-SNE.
    """
    if colour_by is not None and colour_by not in COLOURINGS:
        raise ConfigError(f"colour_by must be one of {', '.join(COLOURINGS)}, but is {colour_by!r}.")
    explored = ExploredRun.of(run)
    frame = node_frame(explored, seed)
    figure = go.Figure()
    for number, (name, part) in enumerate(frame.groupby(colour_by or default_colouring(explored))):
        marker = {"color": colour(number), "symbol": symbol(number), "size": 6, "opacity": 0.8}
        names = [plain(node) for node in part["node"]]
        figure.add_scatter(x=part["x"], y=part["y"], mode="markers", name=plain(name), text=names, marker=marker)
    styled(figure, height=560)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    return View(figure, frame, "Each point is a node; nodes that the model sees as alike lie together.")


def default_colouring(run: ExploredRun) -> str:
    """What nodes are coloured by unless somebody asks for something else."""
    return "class" if (run.labels >= 0).mean() >= FEW_LABELLED else "predicted"


def node_frame(run: ExploredRun, seed: int = 0) -> pd.DataFrame:
    """Everything that is known of each node, and its place in the plane."""
    points = layout(run.run.embed().vectors.detach().numpy(), seed)
    names, labels, predicted = run.classes, run.labels, run.predicted
    return pd.DataFrame(
        {
            "node": run.names,
            "x": points[:, 0],
            "y": points[:, 1],
            "class": [names[label] for label in labels],
            "predicted": [names[label] for label in predicted],
            "right": np.where(labels < 0, "unknown", np.where(labels == predicted, "right", "wrong")),
            "split": [SUBSETS[subset] for subset in run.subsets],
            "probability": run.predictions.probabilities.max(dim=1).values.numpy(),
        }
    )


def layout(vectors: Floats, seed: int = 0) -> Floats:
    """Places near each other for nodes whose vectors are alike, by t-SNE of the leading principal components.

    Of more than 50 000 nodes, for which t-SNE takes very long, they are the first two components themselves.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    count, units = vectors.shape
    vectors = np.nan_to_num(vectors.astype(np.float64))
    if count < 3:
        return np.column_stack([np.arange(count), np.zeros(count)]).astype(np.float64)
    if count > _TSNE_UP_TO and units > 1:
        return np.asarray(PCA(2, random_state=seed).fit_transform(vectors), dtype=np.float64)
    if units > _COMPONENTS and count > _COMPONENTS:
        vectors = PCA(_COMPONENTS, svd_solver="full", random_state=seed).fit_transform(vectors)
    perplexity = min(30.0, (count - 1) / 3)
    start = "pca" if min(vectors.shape) >= 2 and np.ptp(vectors, axis=0).max() > 0 else "random"
    # t-SNE's threads spin while they wait, so that on a busy machine two are slower than one.
    with threadpool_limits(1):
        found = TSNE(init=start, perplexity=perplexity, max_iter=_TSNE_STEPS, random_state=seed).fit_transform(vectors)
    return np.asarray(found, dtype=np.float64)


def entropy(run: AnyRun, nodes: int | None = None, layer: int | None = None) -> View:
    """The entropy of attention, in bits, against the number of neighbours; of G, and of S after all rounds.

    The frame has one row per node: `node`, `degree`, `G` and, for a model with context, `S`. A row of attention is
    scaled to sum 1 first; entries below 0, which S may have, are left out. It is averaged over the heads.

    Args:
        run: A run, or its directory.
        nodes: Of how many test nodes (default: all on graphs of at most 3000 nodes, else 400).
        layer: Which layer, from 1 (default: the first that aggregates).
    """
    explored = ExploredRun.of(run)
    return entropy_view(explored, RowSummary.of(explored.layer(layer), explored.sample(nodes, tests_only=True)))


def entropy_view(run: ExploredRun, rows: RowSummary) -> View:
    """As :func:`entropy`, from rows that are known."""
    degrees = run.degrees[rows.nodes]
    frame = pd.DataFrame({"node": [run.names[node] for node in rows.nodes], "degree": degrees, "G": rows.entropy[0]})
    drawn = [("G", "G, before diffusion", BLUE, "circle")]
    if rows.layer.rounds:
        frame["S"] = rows.entropy[-1]
        drawn.append(("S", "S, after all rounds", ORANGE, "diamond"))
    figure = go.Figure()
    # Nodes of the same degree are moved apart a little; the frame has the true degrees.
    jittered = degrees * np.exp(np.random.default_rng(0).uniform(-0.06, 0.06, len(degrees)))
    for key, name, tint, mark in drawn:
        figure.add_scatter(
            x=np.maximum(jittered, 0.5).round(3),
            y=frame[key].round(3),
            mode="markers",
            name=name,
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
    styled(figure, x="neighbours", y=f"entropy of attention in layer {rows.layer.number}, bits", height=400)
    # Where all nodes have between two and nine neighbours, powers of ten alone would leave the axis without a number.
    figure.update_xaxes(type="log", tickvals=[digit * 10**power for power in range(7) for digit in (1, 2, 5)])
    return View(figure, frame, SPREAD)


def confusion(run: AnyRun) -> View:
    """The held-out nodes by their class (rows) and the predicted one (columns), as numbers of nodes.

    They are the test nodes; of a run without any, all labelled nodes, as models say that were not trained on them.
    """
    explored = ExploredRun.of(run)
    classes, tests, held_out = explored.classes[:-1], explored.tests, explored.out_of_fold
    truth, called, kind = explored.labels[tests], explored.predicted[tests], explored.judged
    if kind != "test" and held_out is not None:
        truth, called, kind = held_out.labels, held_out.probabilities.argmax(axis=1), "out-of-fold"
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (truth, called), 1)
    frame = pd.DataFrame(counts, index=pd.Index(classes, name="class"), columns=pd.Index(classes, name="predicted"))
    names = [plain(name) for name in classes]
    # By position, not by name: plotly would take names that are cut to the same text for one class.
    ticks_at = list(range(len(classes)))
    figure = go.Figure(
        go.Heatmap(
            z=(100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).round(1),
            x=ticks_at,
            y=ticks_at,
            customdata=[[(name, other) for other in names] for name in names],
            text=counts,
            texttemplate="%{text}",
            colorscale=[[0, "#ffffff"], [1, BLUE]],
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
    short = [plain(name if len(name) <= 22 else name[:21] + "…") for name in classes]
    ticks = {"type": "linear", "tickvals": ticks_at, "ticktext": short, "ticks": ""}
    figure.update_yaxes(autorange="reversed", **ticks)
    figure.update_xaxes(**ticks)
    right = 100 * np.trace(counts) / max(counts.sum(), 1)
    caption = (
        f"{kind.capitalize()} nodes: {right:.1f} % of {counts.sum()} are right, on the diagonal. Look for dark squares "
        "off it: classes that are taken for each other."
    )
    return View(figure, frame, caption)


def training_curves(run: AnyRun) -> View | None:
    """Losses and validation accuracy, epoch by epoch; ``None`` for a model that is fitted in closed form.

    The frame has the columns `epoch`, `loss`, `val_loss` and `val_accuracy`.
    """
    history = opened(run).directory.history()
    if not history:
        return None
    frame = pd.DataFrame(history).rename(columns={"number": "epoch"})
    curves = [("loss", "training loss", BLUE, 1), ("val_loss", "validation loss", ORANGE, 1)]
    if frame["val_accuracy"].notna().any():
        curves.append(("val_accuracy", "validation accuracy", ORANGE, 2))
    columns = curves[-1][-1]
    figure = make_subplots(rows=1, cols=columns, horizontal_spacing=0.12)
    for key, name, tint, column in curves:
        figure.add_scatter(
            x=frame["epoch"],
            y=frame[key].round(5),
            mode="lines" if len(frame) > 1 else "markers",
            name=name,
            line={"color": tint, "dash": "dot" if column == 2 else "solid"},
            row=1,
            col=column,
        )
    styled(figure, x="epoch")
    if columns == 2:
        figure.update_yaxes(tickformat=".0%", row=1, col=2)
    if frame["val_loss"].isna().all():
        caption = f"No validation loss of the {len(frame)} epochs is a number, so that none of them is the best."
        return View(figure, frame, caption)
    best = frame.loc[frame["val_loss"].idxmin()]
    epoch = int(best["epoch"])
    figure.add_vline(x=epoch, line={"color": GREY, "dash": "dot", "width": 1})
    right = "" if math.isnan(best["val_accuracy"]) else f", with {100 * best['val_accuracy']:.1f} % right"
    caption = (
        f"The validation loss is lowest in epoch {epoch} of {len(frame)} (dotted line){right}; the weights of that "
        "epoch are the ones shown here."
    )
    return View(figure, frame, caption)
