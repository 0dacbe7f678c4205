"""What the paper reports."""

import csv
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

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
    if experiment == "table1":
        return _figures("table1").get((_NAMES.get(row.method), dataset, labels))
    if experiment == "table2":
        return _figures("table2").get((dict(row.changes)["xi"], dataset, labels))
    return None


@cache
def _figures(table: str) -> dict[tuple[Any, ...], Reported]:
    """The figures of a table by method or xi, graph and labels per class."""
    file = resources.files("cagat.configs") / "paper" / f"{table}.csv"
    return {
        (
            line["method"] if table == "table1" else float(line["xi"]),
            line["dataset"],
            int(line["labels_per_class"]),
        ): Reported(float(line["mean"]), float(line["std"]))
        for line in csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    }
