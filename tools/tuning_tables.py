"""The tables of docs/reproduction.md that come from results/tuning; `tools/update_readme.py` puts them there."""

import json
import statistics
from pathlib import Path
from typing import Any

from cagat.experiments.records import Records
from cagat.experiments.summary import paired_difference
from cagat.models import card
from cagat.style import Table

SWITCHES = ("support", "affinity", "feedback", "normalization", "rounds", "xi", "learn_coefficients")
"""What the last search changed of the preset."""

UNSEEN = (105, 106, 107)
"""Splits on which the presets of the first two searches were tried again."""

Cell = tuple[str, int, int]


def by_hand(results: Path) -> str:
    """How many configurations were tried beside the searches, and with how many fits, file by file."""
    rows = []
    for path in sorted((results / "tuning" / "by_hand").glob("*.jsonl")):
        tried: dict[str, list[str]] = {}
        for config, _, _ in _tried(path):
            tried.setdefault(config["model"], []).append(json.dumps(config, sort_keys=True))
        rows += [[path.name, model, str(len(set(configs))), str(len(configs))] for model, configs in tried.items()]
    return Table(["file", "model", "configurations", "fits"], rows, words=2).markdown() + "\n"


def calibrated(results: Path) -> str:
    """What the presets of the first two searches came to on unseen splits, on the fits that both have."""
    found: dict[str, dict[Cell, dict[str, float]]] = {"cagat": {}, "gat": {}}
    for config, cell, figures in _tried(results / "tuning" / "by_hand" / "calibrated.jsonl"):
        if cell[2] in UNSEEN and config in ({"model": model, "preset": "tuned"} for model in found):
            found[config["model"]][cell] = figures
    both = sorted(set.intersection(*(set(by_cell) for by_cell in found.values())))
    head = ["preset of the first searches", "accuracy", "loss", "loss at the best temperature", "fits"]
    rows = []
    for model, by_cell in found.items():
        means = {key: statistics.fmean(by_cell[cell][key] for cell in both) for key in ("acc", "loss", "nll")}
        rows.append([model, f"{100 * means['acc']:.1f}", f"{means['loss']:.2f}", f"{means['nll']:.2f}", str(len(both))])
    return Table(head, rows).markdown() + "\n"


def switches(results: Path) -> str:
    """What the search over readings and learnt coefficients found on the splits of its finalists, beside the preset."""
    preset = card("cagat").preset("tuned")
    fits: dict[tuple[Any, ...], dict[Cell, float]] = {}
    for record in Records(results / "tuning" / "cagat_switches_finalists" / "fits.jsonl"):
        asked = record["asked"]
        # Without affinity it does not matter where it would be.
        values = asked if asked["xi"] else {**asked, "affinity": preset["affinity"]}
        cell = (asked["dataset"], asked["labels"], asked["seed"])
        fits.setdefault(tuple(values[key] for key in SWITCHES), {})[cell] = 100 * record["found"]["val_accuracy"]
    own = fits[tuple(preset[key] for key in SWITCHES)]
    rows = []
    for values, found in sorted(fits.items(), key=lambda item: -statistics.fmean(item[1].values())):
        changed = [f"{key}={value}" for key, value in zip(SWITCHES, values, strict=True) if value != preset[key]]
        cells = sorted(found.keys() & own.keys())
        ours, theirs = ({number: by_cell[cell] for number, cell in enumerate(cells)} for by_cell in (found, own))
        less = paired_difference(ours, theirs) if changed else None
        name = f"`{', '.join(changed)}`" if changed else "the preset `tuned`"
        mean = statistics.fmean(found.values())
        rows.append([name, f"{mean:.2f}", "" if less is None else less.text(digits=2), str(len(found))])
    return Table(["changed", "validation accuracy", "less the preset, paired", "fits"], rows).markdown() + "\n"


def _tried(path: Path) -> list[tuple[dict[str, Any], Cell, dict[str, float]]]:
    """The configuration, the cell and the figures of each fit by hand."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(config, tuple(cell), line["found"]) for line in lines for config, cell in [json.loads(line["key"])]]
