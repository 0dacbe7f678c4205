"""A table for people, as Markdown and as HTML."""

import html
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Texts in rows and columns.

    Attributes:
        head: The names of the columns.
        rows: The cells, row by row.
        words: How many columns, from the left, hold words and not figures.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1

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
        return (
            f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n'
            "</tbody></table></div>"
        )

    def _cell(self, tag: str, text: str, column: int, more: str = "") -> str:
        kind = ' class="word"' if column < self.words else ""
        return f"<{tag}{kind}{more}>{html.escape(text)}</{tag}>"


def _in_markdown(text: str) -> str:
    """Text that ends no cell and starts no markup."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
