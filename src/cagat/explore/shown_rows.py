"""The rows of attention of chosen nodes, cut down to what can be shown."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cagat.explore.attention_layers import AttentionLayer

STRONGEST = 6
"""How many pairs that are not edges are shown of a row."""

_BLOCK_NUMBERS = 2**24


@dataclass(frozen=True, eq=False)
class ShownRows:
    """What is kept of the rows of G and S of some nodes, in one layer.

    Whole rows have a number for every node of the graph. Of each are kept: the values at the neighbours, itself among
    them; the largest values elsewhere; the entropy of the whole.

    Attributes:
        nodes: The nodes, shape `(m,)`.
        offsets: The neighbours of node k are `neighbours[offsets[k]:offsets[k + 1]]`.
        neighbours: The sources of the edges into the nodes, and the nodes themselves.
        on_edges: G, then S after 1, 2, ... rounds; shape `(1 + rounds, len(neighbours), heads)`.
        others: The nodes without an edge that get most attention, -1 where there are none; shape
            `(rounds, columns, m, STRONGEST)`. Columns are the heads, then their mean if there are several.
        other_values: How much they get.
        entropy: In bits, of each row scaled to sum 1 (entries below 0 left out), the mean over the heads; shape
            `(1 + rounds, m)`.
    """

    nodes: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int64]
    on_edges: npt.NDArray[np.float32]
    others: npt.NDArray[np.int64]
    other_values: npt.NDArray[np.float32]
    entropy: npt.NDArray[np.float32]

    @classmethod
    def of(cls, layer: AttentionLayer, nodes: Tensor) -> "ShownRows":
        """Compute the rows block by block, and keep what is shown."""
        pattern, heads = layer.graph.pattern, layer.heads
        starts, stops = pattern.rowptr.long()[nodes], pattern.rowptr.long()[nodes + 1]
        owner = torch.repeat_interleave(torch.arange(len(nodes)), stops - starts)
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), (stops - starts).cumsum(0)])
        entries = torch.arange(len(owner)) - offsets[owner] + starts[owner]
        neighbours = pattern.col.long()[entries]
        rounds, columns = len(layer.rounds), heads + (heads > 1)
        strongest = min(STRONGEST, layer.graph.num_nodes)
        on_edges = torch.empty(1 + rounds, len(owner), heads)
        others = torch.full((rounds, columns, len(nodes), strongest), -1)
        other_values = torch.zeros(rounds, columns, len(nodes), strongest)
        entropy = torch.empty(1 + rounds, len(nodes))
        size = max(1, _BLOCK_NUMBERS // (layer.graph.num_nodes * heads))
        for first in range(0, len(nodes), size):
            last = min(first + size, len(nodes))
            edges = slice(int(offsets[first]), int(offsets[last]))
            place = owner[edges] - first
            for done in range(1 + rounds):
                rows = layer.after(done).rows(nodes[first:last])
                on_edges[done, edges] = rows[place, :, neighbours[edges]]
                entropy[done, first:last] = _entropy(rows)
                if done > 0:
                    found = _strongest(rows, place, neighbours[edges], strongest)
                    others[done - 1, :, first:last], other_values[done - 1, :, first:last] = found
        return cls(
            *(tensor.numpy() for tensor in (nodes, offsets, neighbours, on_edges, others, other_values, entropy))
        )


def _entropy(rows: Tensor) -> Tensor:
    shares = rows.clamp(min=0)
    shares = shares / shares.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    bits: Tensor = torch.special.entr(shares).sum(dim=-1).mean(dim=1) / math.log(2)
    return bits


def _strongest(rows: Tensor, place: Tensor, neighbours: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest entries off the edges, head by head and of the mean, as (columns, nodes, count)."""
    columns = rows if rows.size(1) == 1 else torch.cat([rows, rows.mean(dim=1, keepdim=True)], dim=1)
    off_edges = columns.clone()
    off_edges[place, :, neighbours] = 0
    values, found = off_edges.topk(count, dim=-1)
    found = torch.where(values > 0, found, -1)
    return found.transpose(0, 1), values.clamp(min=0).transpose(0, 1)
