"""Docstrings follow PyG, in Sphinx's words; the site is written in Markdown. This turns the one into the other."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|attr|mod|math):`~?([^`]+)`")
_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_")
_MATH = re.compile(r"^( *)\.\. math::\n((?:\1 +\S.*\n?|\s*\n)+)", re.MULTILINE)


class PlainDocstrings(griffe.Extension):
    """Rewrites roles, links and formulas of every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)


def plain(text: str) -> str:
    """The docstring as Markdown; formulas stay as they are written, as code."""
    text = _MATH.sub(_as_code, text + "\n")
    text = _ROLE.sub(r"`\1`", text)
    return _LINK.sub(r"[\1](\2)", text).rstrip("\n")


def _as_code(block: re.Match[str]) -> str:
    indent, lines = block[1], block[2].strip("\n").splitlines()
    inner = "\n".join(f"{indent}{line.strip()}" for line in lines)
    return f"{indent}```latex\n{inner}\n{indent}```\n\n"
