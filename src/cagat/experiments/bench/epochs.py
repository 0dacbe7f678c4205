"""A whole epoch of training: a step, and a pass over the validation nodes."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from cagat import data, models
from cagat.experiments.bench.measurement import Budget, Measurement, compare
from cagat.models import Labelled
from cagat.nn import SparseFeatures
from cagat.training import FitOptions, FullBatch, Trainer


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
    theirs = epoch(_PyGRecipe(size, classes), (x.to_dense(), graph.edge_index), train, val)
    for number in threads:
        yield compare(
            f"training epoch, {dataset}", number, trainer.run_epoch, "PyG GAT, dense features", theirs, budget, 0.6, 0.3
        )


class _PyGRecipe(torch.nn.Module):
    """GAT as PyG's example has it."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1 = GATConv(in_channels, 8, heads=8, dropout=0.6)
        self.conv2 = GATConv(64, out_channels, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.elu(self.conv1(F.dropout(x, 0.6, self.training), edge_index))
        logits: Tensor = self.conv2(F.dropout(x, 0.6, self.training), edge_index)
        return logits


def training_step(model: torch.nn.Module, inputs: tuple[Any, ...], train: tuple[Tensor, Tensor]) -> Callable[[], None]:
    """A full-batch step of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def run() -> None:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*inputs)[train[0]], train[1])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return run


def epoch(
    model: torch.nn.Module, inputs: tuple[Any, ...], train: tuple[Tensor, Tensor], val: tuple[Tensor, Tensor]
) -> Callable[[], None]:
    """A step and a validation pass by PyG's own recipe, without what a trainer does besides."""
    step = training_step(model, inputs, train)

    def run() -> None:
        step()
        model.eval()
        with torch.no_grad():
            logits = model(*inputs)[val[0]]
            F.cross_entropy(logits, val[1]).item()
            (logits.argmax(dim=1) == val[1]).double().mean().item()

    return run
