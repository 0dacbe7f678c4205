"""What the site makes of docstrings and links."""

import re
from pathlib import Path

import yaml

from plain_docstrings import plain
from site_hooks import on_page_markdown

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
    assert "</math>\n\n    Args:\n" in text
    assert ":math:" not in text


def test_files_of_the_repository_are_named():
    assert (
        on_page_markdown("the [loops](../src/a.py), and [here](data.md#x)")
        == "the loops (`src/a.py`), and [here](data.md#x)"
    )
    assert on_page_markdown("[`examples/own`](../examples/own)") == "`examples/own`"


def test_every_page_is_in_the_navigation_and_on_the_first_page():
    root = Path(__file__).parents[2]
    pages = {path.name for path in (root / "docs").glob("*.md")}
    nav = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert set(re.findall(r"[\w-]+\.md", str(nav))) == pages
    first = (root / "docs" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(([\w-]+\.md)\)", first)) == pages - {"index.md"}
