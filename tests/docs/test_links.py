"""Links lead somewhere, and the pages keep to their size and their subject."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*DOCS, *sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
CODE = re.compile(r"^```.*?^```|(?<!`)`[^`\n]+`(?!`)", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """The page without its code, in which brackets are no links."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """What a link may name after its #: the headings, as mkdocs and GitHub spell them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", dict.fromkeys(PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target:
            assert target.startswith("https://"), f"{link} is not encrypted"
            continue
        path = page.parent / target if target else page
        assert path.exists(), f"there is no {link}"
        assert path.resolve().is_relative_to(ROOT), f"{link} leaves the repository"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{target or page.name} has no heading #{anchor}"


def test_a_broken_link_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`: three\n\n[a](b.md) `[c](d)`\n\n```\n[e](f)\n# no\n```\n[![g](h.png)](#one-two-three)\n"
    )
    assert links(page) == ["b.md", "h.png", "#one-two-three"]
    assert anchors(page) == {"one-two-three"}


def test_pages_keep_to_their_size():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in DOCS) <= 20_000


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_pages_are_about_the_software(page):
    """Not about how it came to be."""
    assert not re.search(r"\b(issue|reviewer|review|milestone)s?\b", prose(page), re.IGNORECASE)
