"""The one style of everything that cagat draws and writes for people: colours, pages and tables."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from cagat.files import atomic_write

# Okabe and Ito's palette, which colour-blind people can tell apart.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
AMBER = "#E69F00"
SKY = "#56B4E9"
BLACK = "#222222"
YELLOW = "#F0E442"
GREY = "#6B7280"

SERIES = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK, YELLOW)
"""The order in which things get their colours: those that stand out on white first."""

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up")
"""What tells things apart when there are more of them than colours."""


def colour(number: int) -> str:
    """The colour of the thing with this number."""
    return SERIES[number % len(SERIES)]


def symbol(number: int) -> str:
    """The marker of the thing with this number: another one for each turn through the colours."""
    return SYMBOLS[number // len(SERIES) % len(SYMBOLS)]


# Nothing may come from elsewhere: what a page needs is in it. Plotly compiles its shaders with eval.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)


def page(title: str, body: str, style: str = "") -> str:
    """A whole page that needs no other file.

    Args:
        title: The title as plain text; it also is the heading.
        body: What comes under the heading, as HTML.
        style: Further CSS.
    """
    name, sheet = html.escape(title), files("cagat").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{sheet}{style}</style></head>\n"
        f"<body>\n<h1>{name}</h1>\n{body}\n</body></html>\n"
    )


def source_line(command: str) -> str:
    """Who wrote a file, when, and with what."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("cagat", "torch", "torch_geometric"))
    return f"Written by `{command}` on {date.today().isoformat()} with {versions}."


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1  # How many columns, from the left, hold words and not figures.

    def markdown(self) -> str:
        """The table as GitHub's Markdown, without an end of line at its end."""
        rule = ["---"] * self.words + ["---:"] * (len(self.head) - self.words)
        return "\n".join("| " + " | ".join(map(_in_markdown, line)) + " |" for line in (self.head, rule, *self.rows))

    def html(self) -> str:
        """The table as HTML that scrolls sideways where it does not fit."""
        head = "".join(self._cell("th", name, column, ' scope="col"') for column, name in enumerate(self.head))
        rows = "\n".join(
            "<tr>" + "".join(self._cell("td", text, column) for column, text in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
        return f'<div class="wide" tabindex="0">{table}</div>'

    def _cell(self, tag: str, text: str, column: int, more: str = "") -> str:
        kind = ' class="word"' if column < self.words else ""
        return f"<{tag}{kind}{more}>{html.escape(text)}</{tag}>"


def _in_markdown(text: str) -> str:
    """Text that ends no cell and starts no markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


class Section(NamedTuple):
    """A part of a report: a table, or a picture that was written as an SVG file."""

    content: Table | Path | None
    heading: str = ""
    caption: str = ""


def write_report(stem: Path, title: str, sections: Sequence[Section], command: str, note: str = "") -> list[Path]:
    """Write `STEM.html`, which needs no other file, and `STEM.md` beside its pictures; the two files.

    Args:
        stem: The files' common name.
        title: The heading.
        sections: What comes below it.
        command: The command that is named as the source.
        note: What holds for all sections.
    """
    source, cards, text = source_line(command), [], [f"# {title}", note]
    for content, heading, caption in sections:
        if isinstance(content, Path):
            svg = content.read_text(encoding="utf-8")
            shown, written = svg[svg.find("<svg") :], f"![{heading or title}]({content.name})"
        else:
            shown, written = (content.html(), content.markdown()) if content else ("", "")
        above = f'<h2>{html.escape(heading)}</h2><p class="soft">{html.escape(caption)}</p>' if heading else ""
        cards.append(f'<section class="card">{above}{shown}</section>')
        text += [f"## {heading}" if heading else "", caption, written]
    notes = [f"<p>{html.escape(note)}</p>"] if note else []
    body = "\n".join([*notes, *cards, f"<footer><p>{html.escape(source)}</p></footer>"])
    paths = [stem.with_name(f"{stem.name}{suffix}") for suffix in (".html", ".md")]
    atomic_write(paths[0], page(title, body))
    atomic_write(paths[1], "\n\n".join(filter(None, [*text, source])) + "\n")
    return paths
