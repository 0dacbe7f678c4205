"""What mkdocs is told about pages that are also read outside the site."""

import re
from typing import Any

# Pages link to files of the repository, which are not part of the site.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)\s]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name a file of the repository where the site cannot link to it."""
    return _OUTSIDE.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link[1], link[2]
    return text if path in text else f"{text} (`{path}`)"
