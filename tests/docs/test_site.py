"""What the site makes of docstrings, links, formulas and generated tables."""

import re
from pathlib import Path

import yaml

import update_docs
from cagat.experiments.experiment import EXPERIMENTS
from plain_docstrings import plain
from site_hooks import linked, with_formulas

ROOT = Path(__file__).parents[2]

DOCSTRING = r"""Does :meth:`~cagat.CaGATConv.attention` of `"A paper" <https://example.org/x>`_ with
    :math:`S V`.

    .. math::
        a &= b \\
        c &= d

    Args:
        x: More."""


def test_docstrings_become_markdown():
    text = plain(DOCSTRING)
    assert 'Does `cagat.CaGATConv.attention` of ["A paper"](https://example.org/x) with <math' in text
    assert text.count("<mtr>") == 2
    assert "</math></div>\n\n    Args:\n" in text
    assert ":math:" not in text


def test_files_of_the_repository_are_named():
    page = "how-to/train.md"
    text = "the [loops](../../src/a.py), and [here](../reference/data.md#x) or [there](https://example.org)"
    assert linked(text, page) == text.replace("[loops](../../src/a.py)", "loops (`src/a.py`)")
    assert linked("[`examples/own`](../../examples/own)", page) == "`examples/own`"
    assert linked("![curves](../../results/a.png)", page) == "![curves](../results/a.png)"
    assert linked("![curves](../results/a.png)", "index.md") == "![curves](results/a.png)"


def test_formulas_need_no_script():
    text = with_formulas("Let\n$`a + b`$ be.\n\n```math\nc = d\n```\n\n```python\nx = 1\n```\n")
    assert text.startswith("Let <math")
    assert '<div class="formula"><math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text
    assert text.endswith("```python\nx = 1\n```\n")


def test_every_page_is_in_the_navigation_and_on_the_first_page():
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert set(re.findall(r"[\w/-]+\.md", str(nav))) == pages
    first = (docs / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(([\w/-]+\.md)\)", first)) == pages - {"index.md"}


def test_every_experiment_has_a_page_of_evidence():
    for name in (make().name for make in EXPERIMENTS.values()):
        page = (ROOT / "docs" / "evidence" / f"{name}.md").read_text(encoding="utf-8")
        assert f"<!-- generated: {name} -->" in page


def test_commands_are_told_by_the_program():
    page = update_docs.generated("<!-- generated: commands -->", ROOT / "results")
    assert "## cagat data convert\n\n```text\ncagat data convert" in page
    assert "## cagat train" in page
    assert "Every [setting](settings.md) is an option, too." in page
    assert "| `--resume` |" in page
    assert "| `--alpha` |" not in page, "settings have a page of their own"
