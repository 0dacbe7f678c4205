"""The layer alone, forward and backward, beside other layers and our dense reference."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import APPNP, GATConv, GATv2Conv

from cagat import data, reference
from cagat.experiments.bench.measurement import Budget, Measurement, compare, compare_with_slow
from cagat.kernels import CSRGraph
from cagat.nn import CaGATConv

# What the layer is asked to do, the options that make it do so, and for each graph what it may and should cost.
_LAYERS: dict[str, tuple[dict[str, Any], dict[str, tuple[float, float]]]] = {
    "layer": ({}, {"cora": (1.8, 1.0), "pubmed": (3.0, 1.8)}),
    "layer, xi=0": ({"xi": 0.0}, {"cora": (1.2, 0.7), "pubmed": (1.8, 1.0)}),
    "layer, plain GAT (alpha=0, xi=0, lam=1)": (
        {"alpha": 0.0, "xi": 0.0, "lam": 1.0},
        {"cora": (0.5, 0.25), "pubmed": (0.5, 0.25)},
    ),
}


def measure_layers(dataset: str, threads: tuple[int, ...], budget: Budget) -> Iterator[Measurement]:
    """Forward and backward of 64 -> 8 heads x 8 units, ours and PyG's GATConv in turn on the same prepared graph."""
    prepared, x = layer_inputs(dataset)
    for number in threads:
        for case, (options, limits) in _LAYERS.items():
            ours, peer = CaGATConv(64, 8, 8, **options), GATConv(64, 8, 8, add_self_loops=False)
            target, aim = limits.get(dataset, (None, None))
            steps = layer_step(ours, x, prepared), layer_step(peer, x, prepared.edge_index)
            yield compare(f"{case}, {dataset}", number, steps[0], "PyG GATConv", steps[1], budget, target, aim)


def measure_alternatives(dataset: str, threads: tuple[int, ...], budget: Budget) -> Iterator[Measurement]:
    """The layer beside what users would pick instead; APPNP propagates what a linear layer gives, ten times."""
    prepared, x = layer_inputs(dataset)
    others: dict[str, Callable[[], torch.nn.Module]] = {
        "PyG GATConv": lambda: GATConv(64, 8, 8, add_self_loops=False),
        "PyG GATv2Conv": lambda: GATv2Conv(64, 8, 8, add_self_loops=False),
        "PyG Linear + APPNP (K=10)": lambda: _LinearAPPNP(),
    }
    for number in threads:
        for name, make in others.items():
            step = layer_step(make(), x, prepared.edge_index)
            ours = layer_step(CaGATConv(64, 8, 8), x, prepared)
            yield compare(f"compared: layer, {dataset}", number, ours, name, step, budget)


def measure_reference(threads: tuple[int, ...]) -> Iterator[Measurement]:
    """All heads of the layer on Cora, beside one head of Algorithm 1 as it is written, with n x n matrices.

    The reference takes its heads one after the other, a quarter of a minute each: all of them would take eight times
    as long, and the ratio would be an eighth.
    """
    prepared, x = layer_inputs("cora")
    conv = CaGATConv(64, 8, 8)
    A, edge = reference.dense_adjacency(prepared.edge_index[:, : prepared.num_given], prepared.num_nodes)

    def dense() -> None:
        conv.zero_grad()
        Z = conv.lin(x).view(-1, 8, 8)[:, :1]
        H = reference.cagat_layer(Z, conv.att_src[0, :1], conv.att_dst[0, :1], A, edge).H
        H.sum().backward()  # type: ignore[no-untyped-call]

    for number in threads:
        case, peer = "layer against dense, cora", "our dense reference, one head of eight"
        yield compare_with_slow(case, number, layer_step(conv, x, prepared), peer, dense, 1 / 50, 1 / 300)


class _LinearAPPNP(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self._linear = torch.nn.Linear(64, 64)
        self._propagate = APPNP(K=10, alpha=0.1, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self._propagate(self._linear(x), edge_index)
        return out


def layer_inputs(dataset: str) -> tuple[CSRGraph, Tensor]:
    """A prepared graph and features for it."""
    graph = data.load(dataset)
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, 64, requires_grad=True)
    return CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes), x


def layer_step(layer: torch.nn.Module, *inputs: Any) -> Callable[[], None]:
    """Forward and backward of a layer."""

    def step() -> None:
        layer.zero_grad()
        layer(*inputs).sum().backward()

    return step
