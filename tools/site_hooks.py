"""What mkdocs does to the pages of docs/, which are also read outside the site."""

import posixpath
import re
from functools import partial
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

import update_docs
from plain_docstrings import formula_block

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
_FORMULA = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\$`([^`]+)`\$")
# A formula at the start of a line would be a paragraph of its own.
_BROKEN = re.compile(r"(?<=[^\s|])\n *(?=\$`)")


def on_files(files: Any, config: Any, **_: Any) -> None:
    """Let the figures of results/ be part of the site."""
    for path in sorted((update_docs.ROOT / "results").glob("*.png")):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the generated tables, draw formulas, and name files that are not part of the site."""
    text = update_docs.generated(markdown, update_docs.ROOT / "results")
    return with_formulas(linked(text, page.file.src_uri))


def linked(markdown: str, page: str) -> str:
    """Name a file of the repository where the site cannot link to it; figures of results/ are part of the site."""
    return _LINK.sub(partial(_link, page=page), markdown)


def _link(link: re.Match[str], page: str) -> str:
    kind, text, target = link.groups()
    folder = posixpath.dirname(page)
    path = posixpath.normpath(posixpath.join("docs", folder, target))
    if path.startswith("docs/"):
        return link[0]
    if kind:
        return f"![{text}]({posixpath.relpath(path, folder or '.')})"
    return text if path in text else f"{text} (`{path}`)"


def with_formulas(markdown: str) -> str:
    """Formulas in MathML, which browsers draw without a script; GitHub draws them from the same Markdown."""
    text = _FORMULA.sub(lambda formula: formula_block(" ".join(formula[1].split())), markdown)
    return _INLINE.sub(lambda formula: convert(formula[1]), _BROKEN.sub(" ", text))
