"""What a search found, as files: the best configuration, and a picture of all trials."""

import math
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cagat.configs import card
from cagat.experiments.figures import empty_figure, rendered
from cagat.experiments.tuning import Search
from cagat.files import atomic_write
from cagat.style import BLUE, GREY, ORANGE
from cagat.training.config_file import config_text

if TYPE_CHECKING:
    import optuna

_COLUMNS = 4


def write_report(search: Search) -> None:
    """Write `best.yaml` and `search.png` of a search that has a best trial."""
    best, options = search.best(), search.options
    assert best is not None
    comments = (
        f"The best of {search.finished} configurations that cagat tune tried, on {date.today().isoformat()}, with "
        f"cagat {version('cagat')}, torch {version('torch')} and optuna {version('optuna')}.",
        f"Mean validation accuracy {100 * (best.value or 0):.2f} %: {', '.join(options.datasets)}; seeds "
        f"{options.first_seed} to {options.first_seed + options.splits - 1}.",
        *options.nodes_used(),
        "Nodes that took part in any of the splits helped to choose, so an accuracy on them is too high.",
    )
    preset = card(options.model).default
    values: dict[str, Any] = {
        "model": options.model,
        "preset": preset,
        "epochs": options.epochs,
        "patience": options.patience,
    }
    values |= options.given
    if len(options.datasets) == 1:
        values["dataset"] = options.datasets[0]
    counts = {count for _, count in options.searched()}
    # A graph with a split of its own is trained on that, whatever was drawn from it for the search.
    if len(counts) == 1 and None not in counts and not options.given_splits():
        values["labels"] = counts.pop()
        if options.val_labels is not None:
            values["val_labels"] = options.val_labels
    atomic_write(options.out / "best.yaml", config_text({**values, **best.params}, comments))
    _draw(search.finished_trials(), best, options.out / "search.png")


def _draw(trials: "list[optuna.trial.FrozenTrial]", best: "optuna.trial.FrozenTrial", path: Path) -> None:
    """Draw the validation accuracy of all trials, in their order and over each of the searched values."""
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    given_up = [trial for trial in trials if trial.state.name == "PRUNED" and trial.intermediate_values]
    keys = sorted({key for trial in complete for key in trial.params})
    rows = math.ceil((len(keys) + 1) / _COLUMNS)
    figure = empty_figure(3.2 * _COLUMNS, 2.6 * rows)
    in_order, *others = axes = list(figure.subplots(rows, _COLUMNS, sharey=True, squeeze=False).flat)
    for some, tint, size, label in ((given_up, GREY, 12, "given up"), (complete, BLUE, 14, "all fits")):
        in_order.scatter([trial.number for trial in some], list(map(_score, some)), s=size, color=tint, label=label)
    in_order.scatter([best.number], [_score(best)], s=60, marker="*", color=ORANGE, label="best", zorder=3)
    in_order.set_xlabel("trial")
    in_order.legend(frameon=False, fontsize=8)
    for key, panel in zip(keys, others, strict=False):
        values: list[Any] = [trial.params.get(key) for trial in complete]
        panel.scatter(_places(values), list(map(_score, complete)), s=14, color=BLUE)
        panel.scatter(_places([best.params[key]]), [_score(best)], s=60, marker="*", color=ORANGE, zorder=3)
        panel.set_xlabel(key)
        if all(isinstance(value, float) and value > 0 for value in values) and max(values) / min(values) > 20:
            panel.set_xscale("log")
    for panel in others[len(keys) :]:
        panel.set_visible(False)
    for row in range(rows):
        axes[row * _COLUMNS].set_ylabel("validation accuracy, %")
    atomic_write(path, rendered(figure, "png"))


def _score(trial: "optuna.trial.FrozenTrial") -> float:
    """In percent; for a trial that was given up, its last mean."""
    value = trial.value if trial.value is not None else trial.intermediate_values[max(trial.intermediate_values)]
    return 100 * value


def _places(values: list[Any]) -> list[Any]:
    """Numbers where they are, words side by side."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return values if numbers else [str(value) for value in values]
