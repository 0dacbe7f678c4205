"""The HTML page around everything."""

import html
from datetime import date
from importlib.metadata import version
from importlib.resources import files

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
    name = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{stylesheet()}{style}</style></head>\n"
        f"<body>\n<h1>{name}</h1>\n{body}\n</body></html>\n"
    )


def stylesheet() -> str:
    """The style of all pages."""
    return files("cagat.look").joinpath("style.css").read_text(encoding="utf-8")


def inline_svg(text: str) -> str:
    """A picture that was written as a file, as a part of a page."""
    return text[text.find("<svg") :]


def source_line(command: str) -> str:
    """Who wrote a file, when, and with what."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("cagat", "torch", "torch_geometric"))
    return f"Written by `{command}` on {date.today().isoformat()} with {versions}."
