"""Why a node got its class: the labelled nodes that contribute most to a prediction of CaGAT.

The last layer is linear in S: the logit of class c is the mean over the heads of
``lam * sum_j S_ij v_j[c] + (1 - lam) z_i[c]``, plus a bias. So each node j contributes a summand of its own to the
class that i was given, counted against the mean over all classes, since softmax ignores what all classes share.
"""

import logging
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.diffusion import EdgeSupport, is_zero
from cagat.models import CaGAT, NodeClassifier
from cagat.nn.cagat_conv import Aggregation, CaGATConv
from cagat.nn.sparse_features import apply_linear, as_features

_logger = logging.getLogger(__name__)

NAMED = 3
"""How many nodes are named as the reason of a prediction."""

_MOST_WORK = 1e11
"""Multiplications above which reasons are left out unless they are asked for: about a minute on two cores."""


class Evidence(NamedTuple):
    """The labelled nodes that contribute most to the class that each node was given, the most important first.

    Attributes:
        nodes: Their numbers, -1 where fewer contribute anything; shape ``(n, NAMED)``.
        shares: The share of each in all that speaks for the class, labelled or not; shape ``(n, NAMED)``.
    """

    nodes: Tensor
    shares: Tensor

    def texts(self, names: list[str]) -> list[str]:
        """One text per node: `p12 31 %; p7 12 %; p90 4 %`."""
        pairs = zip(self.nodes.tolist(), self.shares.tolist(), strict=True)
        return [
            "; ".join(f"{names[node]} {percent(share)}" for node, share in zip(*row, strict=True) if node >= 0)
            for row in pairs
        ]


def percent(share: float) -> str:
    """A share with as many digits as tell it from nothing."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.5 else f"{value:.1f} %" if value >= 0.05 else "<0.1 %"


@torch.no_grad()
def find_evidence(
    model: NodeClassifier, inputs: tuple[Any, ...], predicted: Tensor, labelled: Tensor, *, always: bool = False
) -> Evidence | None:
    """The labelled nodes that speak most for each node's predicted class, exact; ``None`` if the model is not a CaGAT.

    The cost is a product with S for every labelled node; for every node if entries of S may be below 0, or the last
    layer has several heads, feedback or a residual, since what speaks for a class cannot be summed up by one product
    then. Memory is that of a block of columns.

    Args:
        model: The model.
        inputs: Features, edges and perhaps weights, as the model takes them.
        predicted: The class that each node was given.
        labelled: The nodes that the model was trained on.
        always: Whether to go on where it takes minutes; without it, the result is ``None`` then, and a message says so.
    """
    if not isinstance(model, CaGAT) or not len(labelled):
        return None
    conv, features = model.convs[-1], model.layer_inputs(*inputs)[-1]
    predicted, labelled = (tensor.to(conv.att_src.device) for tensor in (predicted, labelled))
    aggregation = conv.aggregation(features, *inputs[1:])
    own = _against_mean(aggregation.own).mean(dim=1)
    if conv.res is not None:
        own = own + _against_mean(apply_linear(conv.res, as_features(features)))
    own = own.gather(1, predicted[:, None]).squeeze(1)
    values = aggregation.lam[:, None] * _against_mean(aggregation.V) / conv.heads
    if isinstance(aggregation.S, EdgeSupport):
        return _on_edges(aggregation.S, values, own, predicted, labelled)
    total = _sum_by_product(conv, aggregation, values, own, predicted)
    columns = labelled if total is not None else torch.arange(len(own), device=own.device)
    work = len(columns) * (3 * aggregation.S.num_steps + 1) * conv.heads * aggregation.S.graph.pattern.num_entries
    if work > _MOST_WORK and not always:
        _logger.info(
            "The column `because` stays empty: it would take a product for each of %d nodes. To have it: cagat predict "
            "RUN --because --out FILE",
            len(columns),
        )
        return None
    return _by_columns(aggregation, values, own, predicted, labelled, columns, total)


def _against_mean(values: Tensor) -> Tensor:
    return values - values.mean(dim=-1, keepdim=True)


def _sum_by_product(
    conv: CaGATConv, aggregation: Aggregation, values: Tensor, own: Tensor, predicted: Tensor
) -> Tensor | None:
    """All that speaks for each node's class, where one product gives it: S has no entry below 0, and it has one head.

    What a node does for itself, through S and beside it, has one sign then, so that it need not be known apart.
    """
    if conv.heads > 1 or conv.feedback or conv.res is not None or not is_zero(conv.coefficients().xi):
        return None
    through_S = aggregation.S.matmul(values.clamp(min=0))[:, 0].gather(1, predicted[:, None]).squeeze(1)
    return through_S + own.clamp(min=0)


def _by_columns(
    aggregation: Aggregation,
    values: Tensor,
    own: Tensor,
    predicted: Tensor,
    labelled: Tensor,
    columns: Tensor,
    total: Tensor | None,
) -> Evidence:
    """The largest contributions so far, column by column of S."""
    n = len(own)
    summed = torch.zeros_like(own)
    is_labelled = torch.zeros(n, dtype=torch.bool, device=own.device).index_fill_(0, labelled, True)
    best = own.new_zeros(n, NAMED)
    nodes = torch.full((n, NAMED), -1, device=own.device)
    for block, S in aggregation.S.columns(columns):
        found = own.new_zeros(n, len(block))
        for head in range(S.size(1)):
            found.addcmul_(S[:, head], values[block, head].t()[predicted])
        found[block, torch.arange(len(block), device=own.device)] += own[block]
        if total is None:
            summed += found.clamp(min=0).sum(dim=1)
            found, block = found[:, is_labelled[block]], block[is_labelled[block]]
        best, index = torch.cat([best, found], dim=1).topk(NAMED, dim=1)
        # The indices of the best so far come before those of the block.
        nodes = torch.where(
            index < NAMED,
            nodes.gather(1, index.clamp(max=NAMED - 1)),
            torch.cat([block.new_full((NAMED,), -1), block])[index],
        )
    return _evidence(nodes, best, summed if total is None else total)


def _on_edges(S: EdgeSupport, values: Tensor, own: Tensor, predicted: Tensor, labelled: Tensor) -> Evidence:
    """From the entries of S, of which there are as many as edges."""
    n, pattern = len(own), S.graph.pattern
    rows, sources = pattern.rows(), pattern.col.long()
    # What each node does for itself beside S is an entry of the diagonal, which may be there already.
    found = sum(S.values[:, head] * values[sources, head, predicted[rows]] for head in range(S.heads))
    assert isinstance(found, Tensor)
    everyone = torch.arange(n, device=own.device)
    keys = torch.cat([rows * n + sources, everyone * (n + 1)])
    keys, index = torch.unique(keys, return_inverse=True)
    found = own.new_zeros(len(keys)).index_add_(0, index, torch.cat([found, own]))
    rows, sources = keys // n, keys % n
    total = torch.zeros_like(own).index_add_(0, rows, found.clamp(min=0))
    is_labelled = torch.zeros(n, dtype=torch.bool, device=own.device).index_fill_(0, labelled, True)
    kept = is_labelled[sources] & (found > 0)
    rows, sources, found = rows[kept], sources[kept], found[kept]
    order = found.argsort(descending=True, stable=True)
    order = order[rows[order].argsort(stable=True)]
    rows, sources, found = rows[order], sources[order], found[order]
    rank = torch.arange(len(rows), device=own.device) - torch.searchsorted(rows, rows)
    nodes, best = torch.full((n, NAMED), -1, device=own.device), own.new_zeros(n, NAMED)
    first = rank < NAMED
    nodes[rows[first], rank[first]], best[rows[first], rank[first]] = sources[first], found[first]
    return _evidence(nodes, best, total)


def _evidence(nodes: Tensor, best: Tensor, total: Tensor) -> Evidence:
    speaks = (best > 0) & (nodes >= 0)
    shares = best / total.clamp(min=torch.finfo(best.dtype).tiny)[:, None]
    return Evidence(torch.where(speaks, nodes, -1).cpu(), torch.where(speaks, shares, 0).cpu().double())
