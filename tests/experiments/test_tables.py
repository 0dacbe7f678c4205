import csv
import statistics
import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest

from cagat.experiments.experiment import Experiment, Row, figure1, figure2
from cagat.experiments.figures import draw
from cagat.experiments.jobs import JobStore
from cagat.experiments.summary import TableCell, table_cells
from cagat.experiments.tables import write_tables

ROWS = (Row("cagat", "paper"), Row("gat", "authors"))
SMALL = Experiment("small", "A small one", ROWS, ("cora",), (5,), splits=2)
SHARES = {"cagat": (0.8, 0.83), "gat": (0.79, 0.8)}


@pytest.fixture
def store(tmp_path):
    store = JobStore(tmp_path, "small")
    for job in SMALL.jobs():
        store.records.add(job.asked, {"test_accuracy": SHARES[job.method][job.task.seed], "seconds": 1})
    return store


def test_numbers_of_the_table(store, tmp_path):
    cells = table_cells(SMALL, store)
    pictures = draw(SMALL, cells, store, tmp_path)
    write_tables(SMALL, cells, tmp_path, "cagat reproduce small", pictures)
    rows = list(csv.DictReader((tmp_path / "small.csv").open()))
    assert [row["method"] for row in rows] == ["cagat", "gat"]
    values = [100 * share for share in SHARES["cagat"]]
    assert rows[0]["mean"] == f"{statistics.fmean(values):.4f}"
    assert rows[0]["std"] == f"{statistics.stdev(values):.4f}"
    assert (rows[0]["n"], rows[0]["labels_per_class"], rows[0]["minus_gat"]) == ("2", "5", "2.0000")
    text = (tmp_path / "small.md").read_text()
    assert "cagat reproduce small" in text
    assert f"{statistics.fmean(values):.1f} ±" in text
    assert "![A small one](small.svg)" in text
    page = (tmp_path / "small.html").read_text()
    HTMLParser().feed(page)
    assert page.count("<svg") == 1


def test_paired_differences():
    ours = TableCell(ROWS[0], "cora", 20, {0: 81.0, 1: 80.0, 2: 84.0}, 0)
    theirs = TableCell(ROWS[0], "cora", 20, {0: 80.0, 1: 78.0, 2: 81.0, 3: 50.0}, 0)
    difference = ours.minus(theirs)
    assert (difference.mean, difference.n) == (2.0, 3)
    # Student's t with two degrees of freedom, 4.3027, times 1 / sqrt(3).
    assert difference.high - difference.mean == pytest.approx(2.4841, abs=1e-3)
    assert ours.minus(TableCell(ROWS[0], "cora", 20, {0: 1.0}, 0)) is None


def test_table1_puts_the_papers_figures_and_gat_beside(tmp_path):
    rows = (Row("gat", "authors"), Row("cagat", "paper"), Row("appnp", "authors"))
    experiment = Experiment("table1", "T", rows, ("cora",), (20,))
    cells = [TableCell(row, "cora", 20, {0: 80.0 + n, 1: 82.0 + 2 * n}, 0) for n, row in enumerate(rows)]
    write_tables(experiment, cells, tmp_path, "c")
    gat, cagat, _ = csv.DictReader((tmp_path / "table1.csv").open())
    assert (float(cagat["minus_gat"]), float(cagat["minus_appnp"]), gat["minus_gat"]) == (1.5, -1.5, "")
    assert float(gat["paper_mean"]) > 70
    text = (tmp_path / "table1.md").read_text()
    assert "difference to GAT (paired)" in text
    assert "difference to APPNP (paired)" in text


def test_nobody_is_compared_with_a_rival_that_had_other_validation_nodes(tmp_path):
    rows = (Row("gat", "authors", (("val_labels", 0),)), Row("cagat", "paper"), Row("appnp", "authors"))
    cells = [TableCell(row, "cora", 2, {0: 60.0, 1: 61.0}, 0) for row in rows]
    write_tables(Experiment("few", "F", rows, ("cora",), (2,)), cells, tmp_path, "c")
    _, cagat, _ = csv.DictReader((tmp_path / "few.csv").open())
    assert (cagat["minus_gat"], float(cagat["minus_appnp"])) == ("", 0.0)


def test_a_table_that_is_too_wide_becomes_one_for_each_graph(tmp_path):
    graphs, labels = ("cora", "cora:added=50", "citeseer"), (1, 2, 3)
    experiment = Experiment("wide", "W", (Row("gat", "authors"),), graphs, labels)
    cells = [
        TableCell(row, graph, count, {0: 50.0}, 0) for row in experiment.rows for graph in graphs for count in labels
    ]
    write_tables(experiment, cells, tmp_path, "c")
    heads = [line for line in (tmp_path / "wide.md").read_text().splitlines() if line.startswith("| method")]
    assert [head.count("label") for head in heads] == [6, 3]
    assert "| cora, 1 label | cora, 2 labels |" in heads[0]
    assert "| citeseer, 3 labels |" in heads[1]
    assert (tmp_path / "wide.html").read_text().count("<table>") == 2
    write_tables(experiment, cells[:8], tmp_path, "c")
    assert (tmp_path / "wide.html").read_text().count("<table>") == 1


def test_figures(tmp_path):
    curves, store = figure1().restricted(splits=2), JobStore(tmp_path, "figure1")
    for job in curves.jobs():
        store.records.add(job.asked, {"test_accuracy": 0.5, "seconds": 1, "loss": [2.0, 1.5, 1.0][: 3 - job.task.seed]})
    over_labels = Experiment("few_labels", "L", ROWS, ("cora",), (1, 2))
    noisy = Experiment("noise", "N", ROWS, ("cora", "cora:added=50"), (5,))

    def cells(experiment):
        places = [(graph, count) for graph in experiment.datasets for count in experiment.labels]
        return [TableCell(row, *place, {0: 50.0, 1: 60.0}, 0) for row in experiment.rows for place in places]

    paths = draw(curves, table_cells(curves, store), store, tmp_path)
    for experiment in (figure2(), over_labels, noisy):
        paths += draw(experiment, cells(experiment), store, tmp_path)
    assert len(paths) == 8
    before = [path.read_bytes() for path in paths[-2:]]
    draw(noisy, cells(noisy), store, tmp_path)
    assert [path.read_bytes() for path in paths[-2:]] == before, "the same figure is the same file"
    for path in paths:
        if path.suffix == ".svg":
            xml.etree.ElementTree.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
