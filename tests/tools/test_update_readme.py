import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
tool = runpy.run_path(str(ROOT / "tools" / "update_readme.py"))

PAPER_AND_GAT = "paper_mean,paper_std,minus_gat,minus_gat_low,minus_gat_high"
CSV = f"""method,preset,dataset,labels_per_class,mean,std,n,failed,{PAPER_AND_GAT}
gat,tuned,cora,10,80.04,1.5,10,0,76.54,2.5,,,
gat,authors,cora,10,79.2,1.5,10,0,76.54,2.5,,,
cagat,tuned,cora,10,81.26,1.2,10,0,77.98,2.38,1.22,0.31,2.13
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
    assert "| +1.2 [+0.3, +2.1] |" in found
    assert "| the paper's CaGAT |  | 77.98 |" in found
    assert "Means over 10 splits. Written by `cagat reproduce table1`." in found
    assert tool["updated"](found, results) == found


def test_baselines_are_compared_by_their_best_preset(results):
    found = tool["updated"]("<!-- results: baselines -->\n<!-- end of baselines -->", results)
    assert "| gat | +3.5 |" in found
    assert "cagat" not in found


def test_a_whole_table_comes_without_its_title(results):
    found = tool["updated"]("<!-- results: table1 -->\n<!-- end of table1 -->", results)
    assert "| all |" in found
    assert "# Title" not in found
