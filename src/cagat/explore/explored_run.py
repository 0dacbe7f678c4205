"""What all views share: the run that they look at, its attention, and the form of a picture with its numbers."""

import html
import math
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.diffusion import AttentionOperator, EdgeSupport
from cagat.errors import CagatError, ConfigError, DatasetError
from cagat.kernels import CSRGraph
from cagat.models import GAT, CaGAT
from cagat.training import TrainedRun
from cagat.training.doubts import Doubt, OutOfFold, find_doubts
from cagat.training.predictions import Predictions

AnyRun = Union[str, Path, TrainedRun, "ExploredRun"]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[Any]

SUBSETS = (*SPLIT_NAMES, "none")
ALL_UP_TO = 3000
SAMPLE = 400
STRONGEST = 6
"""How many pairs that are not edges are shown of a row."""

_BLOCK_NUMBERS = 2**24

plain = partial(html.escape, quote=False)
"""Text that plotly shows as it is, although it takes tags for markup."""


class NoAttentionError(CagatError):
    """A model has no attention that could be looked at."""


class AttentionLayer(NamedTuple):
    """The attention of a layer in evaluation: G, and S after 1, 2, ... rounds (none in a model without context)."""

    number: int
    G: EdgeSupport
    rounds: tuple[AttentionOperator, ...]


class ExploredRun:
    """A trained run, its graph and its predictions as arrays; what takes long is computed on first use."""

    def __init__(self, run: TrainedRun) -> None:
        self.run = run
        self.graph: Data = run.problem.graph
        self.names = list(map(str, self.graph.node_names))
        self.classes = [*map(str, run.description.classes), "unlabelled"]  # A label of -1 is the last of them.
        self.labels: Integers = self.graph.y.numpy().astype(np.int64)
        into = self.graph.edge_index[1].numpy()  # There are no self-loops.
        self.degrees: Integers = np.bincount(into, minlength=len(self.names)).astype(np.int64)

    @classmethod
    def of(cls, run: AnyRun) -> "ExploredRun":
        """From a run or its directory; an explored run is returned as it is."""
        return run if isinstance(run, ExploredRun) else cls(opened(run))

    @cached_property
    def predictions(self) -> Predictions:
        """The labels of all nodes."""
        return self.run.predict()

    @property
    def predicted(self) -> Integers:
        """The predicted class of each node."""
        return np.asarray(self.predictions.probabilities.argmax(dim=1).numpy())

    @cached_property
    def subsets(self) -> Integers:
        """The part of the split that each node is in, as an index into `SUBSETS`."""
        return np.array([SUBSETS.index(part or "none") for part in self.predictions.subsets])

    @property
    def judged(self) -> str:
        """What the nodes are that attention is judged on: test nodes, or labelled ones of a split without any."""
        return "test" if len(self.run.problem.split.test) else "labelled"

    @property
    def tests(self) -> Integers:
        """The nodes that attention is judged on, those whose class is known."""
        chosen = self.subsets == SUBSETS.index("test") if self.judged == "test" else True
        return np.flatnonzero(chosen & (self.labels >= 0))

    @cached_property
    def out_of_fold(self) -> OutOfFold | None:
        """What models that were not trained on them say about labelled nodes, if the run has folds."""
        return OutOfFold.read(self.run.directory) if self.run.directory.out_of_fold.exists() else None

    @cached_property
    def doubts(self) -> list[tuple[int, Doubt]]:
        """The labels that may be wrong, the gravest first, with the numbers of their nodes."""
        if self.out_of_fold is None:
            return []
        number = {name: node for node, name in enumerate(self.names)}
        return [(number[doubt.node], doubt) for doubt in find_doubts(self.out_of_fold) if doubt.node in number]

    @cached_property
    def layers(self) -> list[AttentionLayer]:
        """The attention of each layer that aggregates; raises NoAttentionError if there is none."""
        inputs = self.run.inputs(self.graph)
        if isinstance(self.run.model, CaGAT):
            return _cagat_layers(self.run.model, *inputs)
        if isinstance(self.run.model, GAT):
            return _gat_layers(self.run.model, *inputs)
        remedy = "Train one that has: cagat train --model cagat (or gat, gatv2)."
        raise NoAttentionError(f"The model {self.run.description.model} has no attention to look at. {remedy}")

    def layer(self, number: int | None) -> AttentionLayer:
        """The layer with this number, from 1, or the first that aggregates."""
        known = {layer.number: layer for layer in self.layers}
        if number is not None and number not in known:
            there = ", ".join(map(str, known))
            raise ConfigError(f"There is attention in layer {there}, but layer {number} was asked for.")
        return self.layers[0] if number is None else known[number]

    def node(self, wanted: str | int) -> int:
        """The number of a node, given by its name or its number."""
        if isinstance(wanted, str):
            if wanted in self.names:
                return self.names.index(wanted)
            first = ", ".join(self.names[:3])
            raise DatasetError(f"The graph has no node called {wanted!r}; its first ones are called {first}.")
        if not 0 <= wanted < len(self.names):
            last = len(self.names) - 1
            raise DatasetError(f"The graph has no node {wanted}: its nodes are numbered from 0 to {last}.")
        return int(wanted)

    def sample(self, count: int | None = None, wanted: tuple[str, ...] = (), *, tests_only: bool = False) -> Integers:
        """The nodes whose rows of S are computed, in ascending order: test nodes first, drawn with a fixed seed.

        The nodes called ``wanted`` come on top. By default it is all nodes of small graphs, and a sample of others.
        """
        size = len(self.names)
        if count is None:
            count = size if size <= ALL_UP_TO else SAMPLE
        if count < 1:
            raise ConfigError(f"The number of nodes must be at least 1, but is {count}.")
        order = np.random.default_rng(0).permutation(size)
        is_test = np.isin(order, self.tests) if self.judged != "test" else self.subsets[order] == SUBSETS.index("test")
        pool = order[is_test] if tests_only else np.concatenate([order[is_test], order[~is_test]])
        return np.union1d(pool[:count], [self.node(name) for name in wanted]).astype(np.int64)


def opened(run: AnyRun) -> TrainedRun:
    """The trained run, which may be given by its directory."""
    if isinstance(run, ExploredRun):
        return run.run
    return run if isinstance(run, TrainedRun) else TrainedRun(run)


def _cagat_layers(model: CaGAT, *inputs: Any) -> list[AttentionLayer]:
    layers = []
    for number, (conv, features) in enumerate(zip(model.convs, model.layer_inputs(*inputs), strict=True), start=1):
        if conv.lam == 0:
            continue  # Its attention is multiplied by 0.
        operators = [conv.attention_operators(features, *inputs[1:], rounds=done) for done in range(conv.K + 1)]
        layers.append(AttentionLayer(number, operators[0].G, tuple(S for _, S in operators[1:])))
    if not layers:
        raise NoAttentionError("With lam=0 no layer aggregates, so there is no attention to look at.")
    return layers


@torch.no_grad()
def _gat_layers(model: GAT, *inputs: Any) -> list[AttentionLayer]:
    """PyG's layers return their attention on the edges, then on the self-loops."""
    x, edge_index = inputs[:2]
    graph = CSRGraph.from_edge_index(edge_index, x.shape[0])
    layers = []
    for number, (conv, features) in enumerate(((model.conv1, x), (model.conv2, model.embed(x, edge_index))), start=1):
        _, (edges, attention) = conv(features, edge_index, return_attention_weights=True)
        assert torch.equal(edges, graph.edge_index), "graphs are loaded without self-loops and duplicates"
        layers.append(AttentionLayer(number, EdgeSupport(graph, graph.merge(attention)), ()))
    return layers


class RowSummary(NamedTuple):
    """What is shown of the rows of G and S of m nodes in one layer, since a whole row has a number for every node.

    Attributes:
        offsets: The neighbours of node k, itself among them, are `neighbours[offsets[k]:offsets[k + 1]]`.
        neighbours: The sources of the edges into the nodes.
        on_edges: G, then S after 1, 2, ... rounds; shape `(1 + rounds, len(neighbours), heads)`.
        entropy: Of the rows scaled to sum 1, in bits, averaged over the heads; shape `(1 + rounds, m)`.
        others: The nodes without an edge that get most attention, -1 where there are none; shape
            `(rounds, columns, m, STRONGEST)`. Columns are the heads, then their mean if there are several.
        other_values: How much they get.
    """

    layer: AttentionLayer
    nodes: Integers
    offsets: Integers
    neighbours: Integers
    on_edges: Floats
    entropy: Floats
    others: Integers
    other_values: Floats

    @classmethod
    def of(cls, layer: AttentionLayer, chosen: Integers) -> "RowSummary":
        """Compute the rows block by block."""
        nodes, pattern = torch.from_numpy(chosen), layer.G.graph.pattern
        owner, entries = pattern.entries_of(nodes)
        offsets = torch.searchsorted(owner, torch.arange(len(nodes) + 1))
        blocks = []
        for block in torch.split(nodes, max(1, _BLOCK_NUMBERS // (pattern.num_cols * layer.G.heads))):
            row, here = pattern.entries_of(block)
            sources = pattern.col[here].long()
            summaries = [_summary(S.rows(block), row, sources) for S in (layer.G, *layer.rounds)]
            blocks.append([torch.stack(values) for values in zip(*summaries, strict=True)])
        along = (1, 1, 2, 2)  # The dimension that stands for the edges or the nodes.
        joined = map(torch.cat, zip(*blocks, strict=True), along)
        on_edges, entropy, others, other_values = (tensor.numpy() for tensor in joined)
        edges = (offsets.numpy(), pattern.col[entries].long().numpy(), on_edges)
        return cls(layer, chosen, *edges, entropy, others[1:], other_values[1:])  # Off the edges, G is 0.


def _summary(rows: Tensor, row: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows at the edges, their entropy, and the largest entries off the edges, of each head and of the mean."""
    # Entries below 0 are left out of the entropy.
    shares = rows.clamp(min=0)
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    bits = torch.special.entr(shares).sum(dim=-1).mean(dim=1) / math.log(2)
    columns = rows.clone() if rows.size(1) == 1 else torch.cat([rows, rows.mean(dim=1, keepdim=True)], dim=1)
    columns[row, :, neighbours] = 0
    values, found = columns.topk(min(STRONGEST, rows.size(2)), dim=-1)
    others = torch.where(values > 0, found, -1)
    return rows[row, :, neighbours], bits, others.transpose(0, 1), values.clamp(min=0).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class View:
    """What a function of :mod:`cagat.explore` returns; Jupyter shows it as its picture.

    Attributes:
        figure: The picture.
        frame: The numbers.
        caption: A sentence that says what to see.
        details: What exactly is counted, where that takes more than a sentence.
    """

    figure: go.Figure
    frame: pd.DataFrame
    caption: str
    details: str = ""

    def _repr_html_(self) -> str:
        """For Jupyter: with plotly in it, so that no network is needed."""
        return str(self.figure.to_html(full_html=False, include_plotlyjs=True))


def styled(figure: go.Figure, *, x: str = "", y: str = "", height: int = 380) -> go.Figure:
    """The figure in the style that all share."""
    axis = {"gridcolor": "#e6e8ec", "zeroline": False, "linecolor": "#9aa2ad", "ticks": "outside", "automargin": True}
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 56, "r": 12, "t": 12, "b": 48},
        font={"family": 'system-ui, "Segoe UI", "Liberation Sans", sans-serif', "size": 13, "color": "#222"},
        paper_bgcolor="#fff",
        plot_bgcolor="#fff",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        hoverlabel={"align": "left"},
    )
    figure.update_xaxes(title_text=x, **axis)
    figure.update_yaxes(title_text=y, **axis)
    return figure
