"""Finished runs as pictures, as SVG that stands in a page."""

import io
import math
import statistics
from typing import Any

from cagat.experiments.run_groups import RunGroup
from cagat.style import colour


def draw_accuracies(groups: list[RunGroup]) -> str:
    """The test accuracy of every run, and the means with their intervals."""
    figure = _figure(8, 0.9 + 0.5 * len(groups))
    axes = figure.subplots()
    for number, group in enumerate(groups):
        tint = colour(number)
        values = list(group.accuracies.values())
        axes.scatter(values, [number] * len(values), s=18, color=tint, alpha=0.45, linewidths=0)
        half = 0 if math.isnan(group.half) else group.half
        axes.errorbar([group.mean], [number], xerr=[half], color=tint, marker="D", markersize=7, capsize=4)
    axes.set_yticks(range(len(groups)), [_escaped(f"{group.name} (n={len(group.runs)})") for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel("test accuracy, %")
    return _svg(figure)


def draw_losses(groups: list[RunGroup]) -> str:
    """Training and validation loss over the epochs, one line a configuration."""
    figure = _figure(9, 3.6)
    for axes, key, title in zip(figure.subplots(1, 2), ("loss", "val_loss"), ("training", "validation"), strict=True):
        for number, group in enumerate(groups):
            courses = [
                [_drawable(getattr(epoch, key)) for epoch in run.history] for run in group.runs.values() if run.history
            ]
            if not courses:
                continue
            length = min(map(len, courses))
            columns = list(zip(*(course[:length] for course in courses), strict=True))
            epochs = range(1, length + 1)
            axes.plot(epochs, list(map(statistics.fmean, columns)), color=colour(number), label=_escaped(group.name))
            axes.fill_between(
                epochs, list(map(min, columns)), list(map(max, columns)), color=colour(number), alpha=0.15, linewidth=0
            )
        axes.set(title=title, xlabel="epoch", ylabel="loss")
    figure.axes[-1].legend(frameon=False, fontsize=8)
    return _svg(figure)


def _drawable(value: float) -> float:
    """What is infinite has no place in a picture, and two of them may have no sum: a gap, as what is not a number."""
    return value if math.isfinite(value) else math.nan


def _figure(width: float, height: float) -> Any:
    # Not pyplot, which has state of its own and looks for a display.
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def _svg(figure: Any) -> str:
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    stream = io.StringIO()
    # Without the time, so that the same runs give the same file.
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _escaped(text: str) -> str:
    """Text in which matplotlib sees no formulas."""
    return text.replace("$", r"\$")
