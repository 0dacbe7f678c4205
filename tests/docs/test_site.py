"""What the site makes of docstrings and links."""

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
