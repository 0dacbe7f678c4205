"""`cagat demo`: CaGAT beside GAT on one split of Cora."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cagat.training import Epoch

# The presets `best` were searched for on validation nodes of other splits (docs/explanation/reproducible.md).
_SHOWN = {
    "GAT, authors' preset": ("gat", "authors"),
    "GAT, best": ("gat", "best"),
    "CaGAT, paper's preset": ("cagat", "paper"),
    "CaGAT, best": ("cagat", "best"),
}
_QUICK = ("GAT, best", "CaGAT, best")
_QUICK_EPOCHS = 20

_NEXT = """\
Next:
  cagat label GRAPH             label your own graph in the browser
  cagat train --dataset GRAPH   train on your own graph and its labels
  cagat demo --seed 1           try another split: accuracy varies by a point or two"""


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the initial weights.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Train each model for at most this many epochs.")] = 10_000,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Check the installation: two models, {_QUICK_EPOCHS} epochs.")
    ] = False,
    picture: Annotated[Path, typer.Option(help="Where to save the learning curves: a .png.")] = Path("runs/demo.png"),
) -> None:
    """Compare CaGAT with GAT on Cora, with 20 labels per class. Takes about a minute."""
    from rich.console import Console
    from rich.status import Status
    from rich.table import Table

    console = Console()
    with console.status("Loading PyTorch"):
        import torch

        from cagat.training import TrainConfig, accuracy, fit
        from cagat.training.compute import keep_freed_memory
        from cagat.training.predictions import require_suffix
        from cagat.training.problem import Problem, fresh_model

    require_suffix(picture, (".png",))
    keep_freed_memory()
    problem = Problem.load(TrainConfig.from_values({"dataset": "cora", "labels": 20, "seed": seed}))
    train, val, test = (problem.part(name) for name in ("train", "val", "test"))
    graph = problem.graph
    console.print(
        f"Cora: {graph.num_nodes} papers, {graph.num_edges // 2} citations, {len(graph.class_names)} classes. "
        f"The models learn from {len(train.nodes)} labelled papers and are tested on {len(test.nodes)} others."
    )
    columns = ("model", "test accuracy", "epochs", "best epoch", "time")
    table = Table(*columns, title=f"Cora, 20 labels per class, seed {seed}")
    histories: dict[str, list[Epoch]] = {}
    for name in _QUICK if quick else _SHOWN:
        model_name, preset = _SHOWN[name]
        most = min(epochs, _QUICK_EPOCHS) if quick else epochs
        config = TrainConfig.from_values({"model": model_name, "preset": preset, "epochs": most})
        torch.manual_seed(seed)
        model, inputs = fresh_model(config, graph, torch.device("cpu"))
        with console.status(f"{name}: first epoch") as status:

            def show(epoch: "Epoch", name: str = name, status: Status = status) -> None:
                status.update(
                    f"{name}: epoch {epoch.number}, loss {epoch.loss:.3f}, validation loss {epoch.val_loss:.3f}, "
                    f"validation accuracy {100 * epoch.val_accuracy:.1f} %"
                )

            started = time.perf_counter()
            result = fit(model, inputs, train, val, config.fit_options(), show)
            seconds = time.perf_counter() - started
        found = accuracy(model, inputs, test)
        histories[name] = result.history
        epochs_done, best = len(result.history), result.best.number
        table.add_row(name, f"{100 * found:.1f} %", str(epochs_done), str(best), f"{seconds:.0f} s")
    console.print(table)
    _draw(histories, picture)
    typer.echo(f"{_NEXT}\n\nLearning curves: {picture}")


def _draw(histories: "dict[str, list[Epoch]]", path: Path) -> None:
    """Validation accuracy over the epochs."""
    from cagat.experiments.figures import empty_figure, rendered
    from cagat.files import atomic_write
    from cagat.style import SERIES

    figure = empty_figure()
    axes = figure.subplots()
    for (name, history), colour in zip(histories.items(), SERIES, strict=False):
        accuracies = [100 * epoch.val_accuracy for epoch in history]
        axes.plot(range(1, len(history) + 1), accuracies, color=colour, label=name, marker="." * (len(history) == 1))
    axes.set(title="Cora, 20 labels per class", xlabel="epoch", ylabel="validation accuracy, %")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    atomic_write(path, rendered(figure, "png"))
