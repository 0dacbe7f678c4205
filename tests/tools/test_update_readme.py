import json
import runpy
from pathlib import Path

import pytest

from cagat.experiments.cell import Cell
from cagat.experiments.job import Job

ROOT = Path(__file__).parents[2]
tool = runpy.run_path(str(ROOT / "tools" / "update_readme.py"))

LESS = ",".join(f"minus_{method}{end}" for method in ("gat", "appnp") for end in ("", "_low", "_high"))
CSV = f"""method,preset,dataset,labels_per_class,mean,std,n,failed,paper_mean,paper_std,{LESS}
gat,tuned,cora,10,80.04,1.5,10,0,76.54,2.5,,,,,,
gat,authors,cora,10,79.2,1.5,10,0,76.54,2.5,,,,,,
cagat,tuned,cora,10,81.26,1.2,10,0,77.98,2.38,1.22,0.31,2.13,-0.2,-1,0.6
"""


@pytest.fixture
def results(tmp_path):
    (tmp_path / "table1.csv").write_text(CSV)
    (tmp_path / "table1.md").write_text("# Title\n\n| all |\n\nWritten by `cagat reproduce table1`.\n")
    return tmp_path


@pytest.mark.parametrize("name", tool["PAGES"])
def test_pages_agree_with_the_results(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    assert tool["updated"](page, ROOT / "results") == page


def test_a_table_replaces_what_was_between_its_marks(results):
    page = "before\n<!-- results: main -->\nold\n<!-- end of main -->\nafter\n"
    found = tool["updated"](page, results)
    assert "old" not in found
    assert found.startswith("before\n<!-- results: main -->\n\n| method |")
    assert found.endswith("<!-- end of main -->\nafter\n")
    assert "| cagat | tuned | **81.3** |" in found
    assert "| gat | tuned | 80.0 |" in found
    assert "| less GAT, paired | +1.2 [+0.3, +2.1] |" in found
    assert "| less APPNP, paired | -0.2 [-1.0, +0.6] |" in found
    assert "| the paper's CaGAT |  | 77.98 |" in found
    assert "Means over 10 splits. Written by `cagat reproduce table1`." in found
    assert tool["updated"](found, results) == found


def test_untouched_splits_are_those_from_the_fifth_on(tmp_path):
    store = tool["JobStore"](tmp_path, "table1")
    for method, preset, shares in (
        ("cagat", "tuned", [0.1] * 4 + [0.80, 0.84]),
        ("gat", "tuned", [0.9] * 4 + [0.79, 0.81]),
        ("appnp", "authors", [0.9] * 4 + [0.82, 0.86]),
    ):
        for seed, share in enumerate(shares):
            job = Job(method, preset, Cell("cora", 20, seed))
            store.records.add(job.asked(), {"test_accuracy": share, "seconds": 1})
    found = tool["updated"]("<!-- results: untouched -->\n<!-- end of untouched -->", tmp_path)
    assert "| tuned CaGAT | cora 20 |" in found
    assert "| less GAT, paired | +2.0 [-10.7, +14.7] |" in found
    assert "| less APPNP, paired | -2.0 [-2.0, -2.0] |" in found
    assert "Splits from 4 on, n = 2." in found


def test_the_nearest_reading_comes_first(tmp_path):
    records = tool["JobStore"](tmp_path, "readings").records
    for support, affinity, xi, shares in (
        ("edges", "edges", 0.001, (0.7198, 0.7198)),
        ("edges", "edges", 0.0, (0.7302, 0.7302)),
        ("full", "edges", 0.001, (0.7498, 0.7698)),
        ("full", "edges", 0.0, (0.7802, 0.7802)),
        ("full", "full", 0.001, (0.7698, 0.7698)),
    ):
        changes = (("support", support), ("affinity", affinity), ("feedback", False), ("xi", xi))
        for seed, share in enumerate(shares):
            job = Job("cagat", "paper", Cell("cora", 10, seed), changes)
            records.add(job.asked(), {"test_accuracy": share, "seconds": 1})
    found = tool["updated"]("<!-- results: nearest -->\n<!-- end of nearest -->", tmp_path)
    # The paper has 77.02 without affinity, which is the same for both places of it, and 77.98 with xi = 0.001. The
    # preset has S on all pairs, affinity on edges and no feedback.
    assert [line for line in found.splitlines() if line.startswith(("| full", "| edges"))] == [
        "| full | full | False | 1.0 | 1.0 | +0.0 | +0.5 [-5.9, +6.9] | 2 |",
        "| full | edges | False | 1.5 | 2.0 | -0.5 |  | 2 |",
        "| edges | edges | False | 5.0 | 6.0 | -5.0 | -4.5 [-10.9, +1.9] | 2 |",
    ]


def test_baselines_are_compared_by_their_best_preset(results):
    found = tool["updated"]("<!-- results: baselines -->\n<!-- end of baselines -->", results)
    assert "| gat | +3.5 |" in found
    assert "cagat" not in found


def test_a_whole_table_comes_without_its_title(results):
    found = tool["updated"]("<!-- results: table1 -->\n<!-- end of table1 -->", results)
    assert "| all |" in found
    assert "# Title" not in found


def test_gat_is_shown_on_the_splits_of_figure_2(tmp_path):
    for name, job, share in (
        ("figure2", Job("cagat", "paper", Cell("cora", 20, 0), (("lam", 0.5),)), 0.80),
        ("figure2", Job("cagat", "paper", Cell("cora", 20, 1), (("lam", 0.5),)), 0.80),
        ("table1", Job("gat", "authors", Cell("cora", 20, 0)), 0.82),
        ("table1", Job("gat", "authors", Cell("cora", 20, 1)), 0.84),
        ("table1", Job("gat", "authors", Cell("cora", 20, 2)), 0.10),
    ):
        tool["JobStore"](tmp_path, name).records.add(job.asked(), {"test_accuracy": share, "seconds": 1})
    found = tool["updated"]("<!-- results: figure2_gat -->\n<!-- end of figure2_gat -->", tmp_path)
    assert "on the same splits: 83.0 (n=2)." in found


def test_the_cost_of_a_run_is_its_median_by_graph(tmp_path):
    records = tool["JobStore"](tmp_path, "table1").records
    for method, preset, labels, seed, seconds, epochs in (
        ("gat", "tuned", 10, 0, 4.0, 100),
        ("gat", "tuned", 20, 0, 5.0, 300),
        ("gat", "tuned", 20, 1, 90.0, 200),
        ("logreg", "ref", 10, 0, 2.0, 1),
    ):
        found = {"test_accuracy": 0.8, "seconds": 1, "cpu_seconds": seconds, "epochs": epochs}
        records.add(Job(method, preset, Cell("cora", labels, seed)).asked(), found)
    found = tool["updated"]("<!-- results: fit_times -->\n<!-- end of fit_times -->", tmp_path)
    assert "| gat | tuned | 5.0 s, 200 |  |  |  |" in found
    assert "logreg" not in found


def test_fits_by_hand_are_counted_by_model(tmp_path):
    keys = [[{"model": "gat", "preset": "tuned"}, ["cora", 10, seed]] for seed in (100, 101)]
    keys += [[{"model": "cagat", "lam": lam}, ["cora", 10, seed]] for seed in (100, 101) for lam in (0.8, 0.9)]
    directory = tmp_path / "tuning" / "by_hand"
    directory.mkdir(parents=True)
    lines = [json.dumps({"name": "", "key": json.dumps(key), "found": {}}) for key in keys]
    (directory / "accuracy.jsonl").write_text("\n".join(lines) + "\n")
    found = tool["updated"]("<!-- results: by_hand -->\n<!-- end of by_hand -->", tmp_path)
    assert "| accuracy.jsonl | gat | 1 | 2 |" in found
    assert "| accuracy.jsonl | cagat | 2 | 4 |" in found


def test_a_search_around_the_preset_is_compared_with_it(tmp_path):
    preset = tool["card"]("cagat").preset("tuned")
    keys = ("support", "affinity", "feedback", "normalization", "rounds", "xi", "learn_coefficients")
    lines = []
    for changes, accuracies in (
        ({}, (0.70, 0.80)),
        ({"affinity": "full"}, (0.70, 0.80)),  # The same: the preset has no affinity.
        ({"rounds": 1, "learn_coefficients": True}, (0.74, 0.82)),
    ):
        for seed, accuracy in enumerate(accuracies):
            asked = {key: preset[key] for key in keys} | changes | {"dataset": "cora", "labels": 10, "seed": seed}
            lines.append(json.dumps({"asked": asked, "found": {"val_accuracy": accuracy}}))
    directory = tmp_path / "tuning" / "cagat_switches_finalists"
    directory.mkdir(parents=True)
    (directory / "fits.jsonl").write_text("\n".join(lines) + "\n")
    found = tool["updated"]("<!-- results: switches -->\n<!-- end of switches -->", tmp_path)
    assert found.splitlines()[4:6] == [
        "| `rounds=1, learn_coefficients=True` | 78.00 | +3.00 [-9.71, +15.71] | 2 |",
        "| the preset `tuned` | 75.00 |  | 2 |",
    ]


def test_the_first_presets_are_compared_on_fits_that_both_have(tmp_path):
    directory = tmp_path / "tuning" / "by_hand"
    directory.mkdir(parents=True)
    lines = []
    for model, preset, seed, loss in (
        ("cagat", "tuned", 105, 0.8),
        ("gat", "tuned", 105, 1.0),
        ("cagat", "tuned", 106, 5.0),  # GAT was not fitted there,
        ("gat", "authors", 106, 5.0),  # but with other settings,
        ("cagat", "tuned", 100, 5.0),  # and this split was searched on.
        ("gat", "tuned", 100, 5.0),
    ):
        key = json.dumps([{"model": model, "preset": preset}, ["cora", 10, seed]])
        lines.append(json.dumps({"name": "", "key": key, "found": {"acc": 0.5, "loss": loss, "nll": loss / 2}}))
    (directory / "calibrated.jsonl").write_text("\n".join(lines) + "\n")
    found = tool["updated"]("<!-- results: calibrated -->\n<!-- end of calibrated -->", tmp_path)
    assert found.splitlines()[4:6] == ["| cagat | 50.0 | 0.80 | 0.40 | 1 |", "| gat | 50.0 | 1.00 | 0.50 | 1 |"]
