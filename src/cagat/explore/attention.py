"""The attention of a trained model: G and S of every layer, and rows of them reduced to what can be shown."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cagat.diffusion import AttentionOperator, EdgeSupport
from cagat.errors import CagatError
from cagat.kernels import CSRGraph
from cagat.models import GAT, CaGAT
from cagat.nn import CaGATConv
from cagat.training import TrainedRun

STRONGEST = 6
"""How many pairs that are not edges are shown of a row."""

_BLOCK_NUMBERS = 2**24


class NoAttentionError(CagatError):
    """A model has no attention that could be looked at."""


@dataclass(frozen=True, eq=False)
class AttentionLayer:
    """The attention of a layer in evaluation: G, and S after 1, 2, ... rounds (none in a model without context)."""

    number: int
    G: EdgeSupport
    rounds: tuple[AttentionOperator, ...]

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.G.heads

    def after(self, rounds: int) -> AttentionOperator:
        """S after so many rounds; after none it is G."""
        return self.G if rounds == 0 else self.rounds[rounds - 1]


def attention_layers(run: TrainedRun) -> list[AttentionLayer]:
    """The attention of every layer of a run's model that aggregates, on its own graph; raises if there is none."""
    inputs = run.inputs(run.problem.graph)
    if isinstance(run.model, CaGAT):
        return _cagat_layers(run.model, *inputs)
    if isinstance(run.model, GAT):
        return _gat_layers(run.model, *inputs)
    raise NoAttentionError(
        f"The model {run.description.model} has no attention to look at. Train one that has: cagat train --model cagat "
        "(or gat, gatv2)."
    )


def _cagat_layers(model: CaGAT, *inputs: Any) -> list[AttentionLayer]:
    layers = []
    for number, (conv, features) in enumerate(zip(model.convs, model.layer_inputs(*inputs), strict=True), start=1):
        assert isinstance(conv, CaGATConv)
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


@dataclass(frozen=True, eq=False)
class RowSummary:
    """What is shown of the rows of G and S of m nodes in one layer, since a whole row has a number for every node.

    Attributes:
        offsets: The neighbours of node k, itself among them, are `neighbours[offsets[k]:offsets[k + 1]]`.
        neighbours: The sources of the edges into the nodes.
        on_edges: G, then S after 1, 2, ... rounds; shape `(1 + rounds, len(neighbours), heads)`.
        others: The nodes without an edge that get most attention, -1 where there are none; shape
            `(rounds, columns, m, STRONGEST)`. Columns are the heads, then their mean if there are several.
        other_values: How much they get.
        entropy: Of the rows scaled to sum 1, in bits, averaged over the heads; shape `(1 + rounds, m)`.
    """

    layer: AttentionLayer
    nodes: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int64]
    on_edges: npt.NDArray[np.float32]
    others: npt.NDArray[np.int64]
    other_values: npt.NDArray[np.float32]
    entropy: npt.NDArray[np.float32]

    @classmethod
    def of(cls, layer: AttentionLayer, chosen: npt.NDArray[np.int64]) -> "RowSummary":
        """Compute the rows block by block."""
        nodes = torch.from_numpy(chosen)
        pattern, heads, num_nodes = layer.G.graph.pattern, layer.heads, layer.G.graph.num_nodes
        owner, entries = pattern.entries_of(nodes)
        offsets = torch.searchsorted(owner, torch.arange(len(nodes) + 1))
        neighbours = pattern.col.long()[entries]
        rounds, columns, strongest = len(layer.rounds), heads + (heads > 1), min(STRONGEST, num_nodes)
        on_edges = torch.empty(1 + rounds, len(owner), heads)
        others = torch.full((rounds, columns, len(nodes), strongest), -1)
        other_values = torch.zeros(rounds, columns, len(nodes), strongest)
        entropy = torch.empty(1 + rounds, len(nodes))
        size = max(1, _BLOCK_NUMBERS // (num_nodes * heads))
        for first in range(0, len(nodes), size):
            block = slice(first, min(first + size, len(nodes)))
            edges = slice(int(offsets[block.start]), int(offsets[block.stop]))
            place = owner[edges] - first
            for done in range(1 + rounds):
                rows = layer.after(done).rows(nodes[block])
                on_edges[done, edges] = rows[place, :, neighbours[edges]]
                entropy[done, block] = _entropy(rows)
                if done > 0:
                    found = _strongest(rows, place, neighbours[edges], strongest)
                    others[done - 1, :, block], other_values[done - 1, :, block] = found
        kept = (nodes, offsets, neighbours, on_edges, others, other_values, entropy)
        return cls(layer, *(tensor.numpy() for tensor in kept))


def _entropy(rows: Tensor) -> Tensor:
    """In bits; entries below 0 are left out."""
    shares = rows.clamp(min=0)
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    bits: Tensor = torch.special.entr(shares).sum(dim=-1).mean(dim=1) / math.log(2)
    return bits


def _strongest(rows: Tensor, place: Tensor, neighbours: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest entries off the edges, of each head and of the mean, as (columns, nodes, count)."""
    columns = rows.clone() if rows.size(1) == 1 else torch.cat([rows, rows.mean(dim=1, keepdim=True)], dim=1)
    columns[place, :, neighbours] = 0
    values, found = columns.topk(count, dim=-1)
    return torch.where(values > 0, found, -1).transpose(0, 1), values.clamp(min=0).transpose(0, 1)
