"""A search as a picture."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cagat.files import atomic_write
from cagat.style import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    import optuna

_COLUMNS = 4


def draw_search(trials: "list[optuna.trial.FrozenTrial]", best: "optuna.trial.FrozenTrial", path: Path) -> None:
    """Draw the validation accuracy of all trials, in their order and over each of the searched values, as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    given_up = [trial for trial in trials if trial.state.name == "PRUNED" and trial.intermediate_values]
    keys = sorted({key for trial in complete for key in trial.params})
    rows = math.ceil((len(keys) + 1) / _COLUMNS)
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.6 * rows), layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS, sharey=True, squeeze=False).flat)
    course, *others = axes
    course.scatter([t.number for t in given_up], [_score(t) for t in given_up], s=12, color=GREY, label="given up")
    course.scatter([t.number for t in complete], [_score(t) for t in complete], s=14, color=BLUE, label="all fits")
    course.scatter([best.number], [_score(best)], s=60, marker="*", color=ORANGE, label="best", zorder=3)
    course.set_xlabel("trial")
    course.legend(frameon=False, fontsize=8)
    for key, panel in zip(keys, others, strict=False):
        values = [trial.params.get(key) for trial in complete]
        panel.scatter(_places(values), [_score(trial) for trial in complete], s=14, color=BLUE)
        panel.scatter(_places([best.params[key]]), [_score(best)], s=60, marker="*", color=ORANGE, zorder=3)
        panel.set_xlabel(key)
        if _spans_magnitudes(values):
            panel.set_xscale("log")
    for panel in others[len(keys) :]:
        panel.set_visible(False)
    for panel in axes:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    for row in range(rows):
        axes[row * _COLUMNS].set_ylabel("validation accuracy, %")
    canvas = FigureCanvasAgg(figure)
    atomic_write(path, canvas.print_png)


def _score(trial: "optuna.trial.FrozenTrial") -> float:
    """In percent; of a trial that was given up, what it had then."""
    value = trial.value if trial.value is not None else trial.intermediate_values[max(trial.intermediate_values)]
    return 100 * value


def _places(values: list[Any]) -> list[Any]:
    """Numbers where they are, words side by side."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return values if numbers else [str(value) for value in values]


def _spans_magnitudes(values: list[Any]) -> bool:
    if not all(isinstance(value, float) and value > 0 for value in values):
        return False
    return bool(max(values) / min(values) > 20)
