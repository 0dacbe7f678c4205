"""What mkdocs is told about pages that are also read outside the site."""

import re
from pathlib import Path
from typing import Any

# Pages link to files of the repository, which are not part of the site.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Put pages into the navigation that are there already or not yet."""
    measured = next(section["Measured"] for section in config["nav"] if "Measured" in section)
    if Path(config["docs_dir"], "scaling.md").exists():
        measured.append({"Scaling": "scaling.md"})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name a file of the repository where the site cannot link to it."""
    return _OUTSIDE.sub(_named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link[1], link[2]
    return text if path in text else f"{text} (`{path}`)"
