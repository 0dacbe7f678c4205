"""The attention of a trained model, layer by layer and round by round."""

from dataclasses import dataclass
from typing import Any

import torch

from cagat.diffusion import AttentionOperator, EdgeSupport
from cagat.errors import CagatError
from cagat.kernels import CSRGraph
from cagat.models import CaGAT
from cagat.models.gat import GAT
from cagat.nn import CaGATConv
from cagat.training import TrainedRun


class NoAttentionError(CagatError):
    """A model has no attention that could be looked at."""


@dataclass(frozen=True, eq=False)
class AttentionLayer:
    """The attention of a layer, as it is in evaluation.

    Attributes:
        number: Which layer, from 1.
        G: GAT's attention.
        rounds: S after 1, 2, ... rounds; nothing in a model without context.
    """

    number: int
    G: EdgeSupport
    rounds: tuple[AttentionOperator, ...]

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.G.heads

    @property
    def graph(self) -> CSRGraph:
        """The graph with its self-loops."""
        return self.G.graph

    def after(self, rounds: int) -> AttentionOperator:
        """S after so many rounds; after none it is G."""
        return self.G if rounds == 0 else self.rounds[rounds - 1]


def attention_layers(run: TrainedRun) -> list[AttentionLayer]:
    """The attention of every layer of a run's model that aggregates, on its own graph.

    Raises:
        NoAttentionError: The model has none.
    """
    inputs = run.inputs(run.problem.graph)
    if isinstance(run.model, CaGAT):
        return _context_aware(run.model, *inputs)
    if isinstance(run.model, GAT):
        return _plain(run.model, *inputs)
    raise NoAttentionError(
        f"The model {run.description.model} has no attention to look at. Train one that has: cagat train --model cagat "
        "(or gat, gatv2)."
    )


def _context_aware(model: CaGAT, *inputs: Any) -> list[AttentionLayer]:
    layers = []
    for number, (conv, features) in enumerate(zip(model.convs, model.layer_inputs(*inputs), strict=True), start=1):
        assert isinstance(conv, CaGATConv)
        if conv.lam == 0:
            continue  # Its attention, whatever it may be, enters nothing.
        operators = [conv.attention_operators(features, *inputs[1:], rounds=done) for done in range(conv.K + 1)]
        layers.append(AttentionLayer(number, operators[0].G, tuple(S for _, S in operators[1:])))
    if not layers:
        raise NoAttentionError("With lam=0 no layer aggregates, so there is no attention to look at.")
    return layers


@torch.no_grad()
def _plain(model: GAT, *inputs: Any) -> list[AttentionLayer]:
    """PyG's layers give their attention on the edges, then on the self-loops."""
    x, edge_index = inputs[:2]
    graph = CSRGraph.from_edge_index(edge_index, x.shape[0])
    layers = []
    for number, (conv, features) in enumerate(((model.conv1, x), (model.conv2, model.embed(x, edge_index))), start=1):
        _, (edges, attention) = conv(features, edge_index, return_attention_weights=True)
        assert torch.equal(edges, graph.edge_index), "graphs are loaded without self-loops and duplicates"
        layers.append(AttentionLayer(number, EdgeSupport(graph, graph.merge(attention)), ()))
    return layers
