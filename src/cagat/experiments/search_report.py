"""What a search found, as files."""

import csv
import io
from datetime import date
from importlib.metadata import version
from typing import Any

from cagat.experiments.search_picture import draw_search
from cagat.experiments.tuning import Search
from cagat.files import atomic_write
from cagat.training.config_file import config_text


def write_report(search: Search) -> None:
    """Write the best configuration, the picture and the table of a search that has a best trial."""
    best, options = search.best(), search.options
    assert best is not None
    seeds = f"{options.first_seed} to {options.first_seed + options.splits - 1}"
    comments = (
        f"The best of {search.finished} configurations that cagat tune tried, on {date.today().isoformat()}, with "
        f"cagat {version('cagat')}, torch {version('torch')} and optuna {version('optuna')}.",
        f"Mean validation accuracy {100 * (best.value or 0):.2f} %: {', '.join(options.datasets)}; "
        f"{', '.join(map(str, options.labels))} labels a class; splits with the seeds {seeds}.",
        "No test label was looked at.",
    )
    judged: dict[str, Any] = {"epochs": options.epochs, "patience": options.patience}
    if len(options.datasets) == 1:
        judged["dataset"] = options.datasets[0]
    if len(options.labels) == 1:
        judged["labels"] = options.labels[0]
    text = config_text({"model": options.model, **judged, **best.params}, comments)
    atomic_write(options.out / "best.yaml", text)
    atomic_write(options.out / "trials.csv", _table(search))
    draw_search(search.study.trials, best, options.out / "search.png")


def _table(search: Search) -> str:
    trials = [trial for trial in search.study.trials if trial.state.is_finished()]
    keys = sorted({key for trial in trials for key in trial.params})
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["trial", "state", "val_accuracy", "fits", *keys])
    for trial in trials:
        row: list[Any] = [trial.number, trial.state.name.lower(), trial.value, len(trial.intermediate_values)]
        writer.writerow([*row, *(trial.params.get(key) for key in keys)])
    return lines.getvalue()
