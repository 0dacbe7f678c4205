"""Docstrings follow PyG, in Sphinx's words; the site is written in Markdown. This turns the one into the other."""

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

_ROLE = re.compile(r":(?:class|meth|func|attr|mod):`~?([^`]+)`")
_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_")
_INLINE = re.compile(r":math:`([^`]+)`")
_BLOCK = re.compile(r"^( *)\.\. math::\n((?:\1 +\S.*\n?|\s*\n)+)", re.MULTILINE)


class PlainDocstrings(griffe.Extension):
    """Rewrites roles, links and formulas of every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """The docstring as Markdown, with formulas in MathML, which browsers draw without a script."""
    text = _BLOCK.sub(_drawn_block, text + "\n")
    # At the start of a line Markdown would take a formula for a paragraph of its own.
    text = re.sub(r"(?<=\S)\n *(?=:math:)", " ", text)
    text = _INLINE.sub(lambda formula: convert(" ".join(formula[1].split())), text)
    text = _ROLE.sub(r"`\1`", text)
    return _LINK.sub(r"[\1](\2)", text).rstrip("\n")


def _drawn_block(block: re.Match[str]) -> str:
    indent, formula = block[1], " ".join(block[2].split())
    aligned = rf"\begin{{align*}}{formula}\end{{align*}}" if "&" in formula or r"\\" in formula else formula
    return f"{indent}{formula_block(aligned)}\n\n"


def formula_block(formula: str) -> str:
    """A formula in a line of its own, which scrolls sideways where it does not fit."""
    return f'<div class="formula">{convert(formula, display="block")}</div>'
