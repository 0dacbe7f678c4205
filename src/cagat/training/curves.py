"""The course of a training as a picture."""

import math
from pathlib import Path

from cagat.files import atomic_write
from cagat.style import BLUE, GREY, ORANGE
from cagat.training.trainer import Epoch


def draw_curves(history: list[Epoch], best_epoch: int, path: Path) -> None:
    """Draw losses and validation accuracy over the epochs, with the best epoch marked, as PNG."""
    # Not pyplot, which has state of its own and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    validated = not all(math.isnan(epoch.val_accuracy) for epoch in history)
    losses, *others = figure.subplots(1, 1 + validated, squeeze=False)[0]
    numbers = [epoch.number for epoch in history]
    # A single epoch is a point, not a line.
    style = {"marker": "o"} if len(history) == 1 else {"linewidth": 1.3}
    losses.plot(numbers, [epoch.loss for epoch in history], color=BLUE, label="training", **style)
    losses.plot(numbers, [epoch.val_loss for epoch in history], color=ORANGE, label="validation", **style)
    losses.set(title="Loss", xlabel="epoch")
    for axes in others:
        axes.plot(numbers, [epoch.val_accuracy for epoch in history], color=ORANGE, label="validation", **style)
        axes.set(title="Validation accuracy", xlabel="epoch")
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axes in (losses, *others):
        axes.axvline(best_epoch, color=GREY, linestyle=":", linewidth=1, label=f"best: epoch {best_epoch}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    canvas = FigureCanvasAgg(figure)
    atomic_write(path, canvas.print_png)
