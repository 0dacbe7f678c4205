"""`cagat demo`: CaGAT beside GAT on one split of Cora."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cagat.training import Epoch


def demo(
    seed: Annotated[int, typer.Option(min=0, help="The split, and the initial weights.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="The largest number of epochs of each model.")] = 10_000,
) -> None:
    """Train CaGAT and PyG's GAT on one split of Cora (20 labels a class) and compare them. About two minutes."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    with console.status("Loading PyTorch"):
        import torch

        from cagat import data, models
        from cagat.training import FitOptions, accuracy, fit

    graph = data.load("cora", sparse=True)
    split = data.split(graph.y, train_per_class=20, val_per_class=20, seed=seed)
    x = data.normalize_features(graph.x, "l1")
    classes = len(graph.class_names)
    console.print(
        f"Cora: {graph.num_nodes} papers, {graph.num_edges // 2} citations, {classes} classes. "
        f"{len(split.train)} papers have a label to train on, {len(split.test)} are to be labelled."
    )

    table = Table(
        "model", "test accuracy", "epochs", "best epoch", "time", title=f"Cora, 20 labels a class, seed {seed}"
    )
    recipes = {
        "CaGAT (ours, the paper's coefficients)": (models.CaGAT, (x.size(1), 8, 2, classes), x),
        "GAT (PyTorch Geometric)": (models.GAT, (x.size(1), 8, classes), x.to_dense()),
    }
    for name, (network, sizes, features) in recipes.items():
        torch.manual_seed(seed)
        model: torch.nn.Module = network(*sizes)
        inputs = (features, graph.edge_index)
        with _Progress(console, name) as progress:
            result = fit(
                model,
                inputs,
                (split.train, graph.y[split.train]),
                (split.val, graph.y[split.val]),
                FitOptions(epochs=epochs),
                progress.show,
            )
        test_accuracy = accuracy(model, inputs, split.test, graph.y[split.test])
        table.add_row(
            name, f"{100 * test_accuracy:.1f} %", str(result.epochs), str(result.best.number), f"{result.seconds:.0f} s"
        )
    console.print(table)
    console.print("One split tells little: its accuracy varies by a point or two with the seed. Try --seed 1, 2, ...")


class _Progress:
    """A line that tells how far the training of one model is; training ends when validation stops improving."""

    def __init__(self, console: object, name: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        assert isinstance(console, Console)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._name = name
        self._task = self._progress.add_task(f"{name}: compiling and first epoch", total=None)

    def __enter__(self) -> "_Progress":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, epoch: "Epoch") -> None:
        self._progress.update(
            self._task,
            description=f"{self._name}: epoch {epoch.number}, loss {epoch.loss:.3f}, validation loss "
            f"{epoch.val_loss:.3f}, validation accuracy {100 * epoch.val_accuracy:.1f} %",
        )
