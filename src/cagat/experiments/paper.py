"""What the paper reports."""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

from cagat.experiments.experiment import Row

_NAMES = {
    "mlp": "MLP",
    "logreg": "LogReg",
    "labelprop": "LabelProp",
    "labelprop-nl": "LabelProp NL",
    "dgi": "DGI",
    "graphsage": "GraphSAGE",
    "gcn": "GCN",
    "cvd-pp": "CVD+PP",
    "gat": "GAT",
    "cagat": "CaGAT",
}


class Reported(NamedTuple):
    """An accuracy in percent and its standard deviation."""

    mean: float
    std: float


def reported(experiment: str, row: Row, dataset: str, labels: int) -> Reported | None:
    """The paper's figure for a cell of Table 1 or Table 2, if it has one."""
    if experiment == "table2":
        return _table2().get((dataset, labels, dict(row.changes)["xi"]))
    if experiment == "table1":
        return _table1().get((_NAMES.get(row.method, ""), dataset, labels))
    return None


@cache
def _table1() -> dict[tuple[str, str, int], Reported]:
    return {
        (line["method"], line["dataset"], int(line["labels_per_class"])): _figure(line) for line in _lines("table1")
    }


@cache
def _table2() -> dict[tuple[str, int, float], Reported]:
    return {
        (line["dataset"], int(line["labels_per_class"]), float(line["xi"])): _figure(line) for line in _lines("table2")
    }


def _lines(name: str) -> list[dict[str, str]]:
    file = resources.files("cagat.configs") / "paper" / f"{name}.csv"
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def _figure(line: dict[str, str]) -> Reported:
    return Reported(float(line["mean"]), float(line["std"]))
