"""The layer, forward and backward, beside other layers and our dense reference; and a whole epoch of training."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn import ELU, Dropout, Linear, Module
from torch.nn import functional as F
from torch_geometric.nn import APPNP, GATConv, GATv2Conv, Sequential

from cagat import data, models, reference
from cagat.experiments.bench.measurement import Budget, Measurement, compare, milliseconds, row_of
from cagat.kernels import CSRGraph
from cagat.models import Labelled
from cagat.nn import CaGATConv, SparseFeatures
from cagat.training import FitOptions, FullBatch, Trainer
from cagat.training.compute import computing

# What the layer is asked to do: its heads and channels, its options, and for each graph what it may and should cost.
_Cases = dict[str, tuple[int, int, dict[str, Any], dict[str, tuple[float, float]]]]
_PLAIN = {"alpha": 0.0, "xi": 0.0, "lam": 1.0}
LAYERS: _Cases = {
    "layer": (8, 8, {}, {"cora": (1.8, 1.0), "pubmed": (3.0, 1.8)}),
    "layer, xi=0": (8, 8, {"xi": 0.0}, {"cora": (1.2, 0.7), "pubmed": (1.8, 1.0)}),
    "layer, plain GAT (alpha=0, xi=0, lam=1)": (8, 8, _PLAIN, {"cora": (0.5, 0.25), "pubmed": (0.5, 0.25)}),
}
# These are measured with all threads, on graphs that have limits.
_VARIANTS: _Cases = {
    "layer, 4 heads x 32 units": (4, 32, {}, {"pubmed": (1.4, 1.0)}),
    "layer, 8 heads x 32 units": (8, 32, {}, {"pubmed": (1.4, 1.0)}),
    "layer, 1 head x 256 units": (1, 256, {}, {"pubmed": (1.4, 1.0)}),
    "layer, learnt coefficients": (8, 8, {"learn_coefficients": True}, {"pubmed": (2.5, 1.5)}),
    "layer, feedback": (8, 8, {"feedback": True}, {"pubmed": (2.5, 1.5)}),
    "layer, affinity on all pairs": (8, 8, {"affinity": "full"}, {"pubmed": (2.5, 1.5)}),
}


def measure_layers(dataset: str, threads: tuple[int, ...], budget: Budget) -> Iterator[Measurement]:
    """Forward and backward from 64 units, ours and PyG's GATConv in turn on the same prepared graph."""
    prepared, x = layer_inputs(dataset)
    for number in threads:
        variants = {case: row for case, row in _VARIANTS.items() if number == max(threads) and dataset in row[3]}
        for case, (heads, channels, options, limits) in (LAYERS | variants).items():
            ours = CaGATConv(64, channels, heads, **options)
            peer = GATConv(64, channels, heads, add_self_loops=False)
            target, aim = limits.get(dataset, (None, None))
            steps = layer_step(ours, x, prepared), layer_step(peer, x, prepared.edge_index)
            yield compare(f"{case}, {dataset}", number, steps[0], "PyG GATConv", steps[1], budget, target, aim)


def measure_alternatives(dataset: str, threads: tuple[int, ...], budget: Budget) -> Iterator[Measurement]:
    """The layer beside what users would pick instead; APPNP propagates what a linear layer gives, ten times."""
    prepared, x = layer_inputs(dataset)
    ours = layer_step(CaGATConv(64, 8, 8), x, prepared)
    others = {
        "PyG GATConv": GATConv(64, 8, 8, add_self_loops=False),
        "PyG GATv2Conv": GATv2Conv(64, 8, 8, add_self_loops=False),
        "PyG Linear + APPNP (K=10)": Sequential(
            "x, edge_index",
            [(Linear(64, 64), "x -> x"), (APPNP(K=10, alpha=0.1, add_self_loops=False), "x, edge_index -> x")],
        ),
    }
    for number, (name, layer) in product(threads, others.items()):
        theirs = layer_step(layer, x, prepared.edge_index)
        yield compare(f"compared: layer, {dataset}", number, ours, name, theirs, budget)


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

    ours = layer_step(conv, x, prepared)
    case, peer = "layer against dense, cora", "our dense reference, one head of eight"
    for number in threads:
        with computing(number, deterministic=False):
            ours()
            before = [milliseconds(ours) for _ in range(5)]
            slow = milliseconds(dense)
            after = [milliseconds(ours) for _ in range(5)]
        yield row_of(case, number, before + after, peer, [slow], 1 / 50, 1 / 300)


def layer_inputs(dataset: str) -> tuple[CSRGraph, Tensor]:
    """A prepared graph and features for it."""
    graph = data.load(dataset)
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, 64, requires_grad=True)
    return CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes), x


def layer_step(layer: Module, *inputs: Any) -> Callable[[], None]:
    """Forward and backward of a layer."""

    def step() -> None:
        layer.zero_grad()
        layer(*inputs).sum().backward()

    return step


def measure_epochs(dataset: str, threads: tuple[int, ...], budget: Budget) -> Iterator[Measurement]:
    """The paper's network on sparse features, and PyG's GAT on dense ones, as its own example has them."""
    graph = data.load(dataset, sparse=True)
    split = data.split(graph.y, train_per_class=20, val_per_class=20, seed=0)
    x = data.normalize_features(graph.x, "l1")
    train, val = (Labelled(nodes, graph.y[nodes]) for nodes in (split.train, split.val))
    size, classes = x.size(1), int(graph.y.max()) + 1
    torch.manual_seed(0)
    # As in a run, sparse features are prepared once; and it goes on for as long as is measured.
    inputs = (SparseFeatures.from_tensor(x), graph.edge_index)
    endless = FitOptions(epochs=10**9, patience=10**9)
    trainer = Trainer(FullBatch(models.CaGAT(size, 8, 2, classes), inputs, train, val), endless)
    # GAT as PyG's example has it.
    peer = Sequential(
        "x, edge_index",
        [
            (Dropout(0.6), "x -> x"),
            (GATConv(size, 8, heads=8, dropout=0.6), "x, edge_index -> x"),
            ELU(),
            Dropout(0.6),
            (GATConv(64, classes, heads=1, concat=False, dropout=0.6), "x, edge_index -> x"),
        ],
    )
    dense = (x.to_dense(), graph.edge_index)
    step = training_step(peer, dense, train)

    def theirs() -> None:
        """A step and a validation pass, without what a trainer does besides."""
        step()
        peer.eval()
        with torch.no_grad():
            logits = peer(*dense)[val.nodes]
            F.cross_entropy(logits, val.classes).item()
            (logits.argmax(dim=1) == val.classes).double().mean().item()

    case, name = f"training epoch, {dataset}", "PyG GAT, dense features"
    for number in threads:
        yield compare(case, number, trainer.run_epoch, name, theirs, budget, 0.6, 0.3)


def training_step(model: Module, inputs: tuple[Any, ...], train: Labelled) -> Callable[[], None]:
    """A full-batch step of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def run() -> None:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs)[train.nodes], train.classes)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return run
