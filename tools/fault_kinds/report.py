"""The table of what was tried, for people and for programs."""

import json
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from cagat.files import atomic_write


@dataclass(frozen=True)
class Row:
    """What came of all tries of a fault."""

    name: str
    title: str
    must: str
    tries: int
    passed: int
    failed: int
    seconds: float
    command: str
    date: str
    versions: dict[str, str]
    kinds: dict[str, int] = field(default_factory=dict)
    """How many tries were of which kind, where there are few."""


def facts() -> dict[str, str]:
    """The versions that a row was measured with, and the state of the sources."""
    packages = ("cagat", "torch", "torch_geometric", "numba", "numpy")
    versions = {"python": platform.python_version(), **{package: version(package) for package in packages}}
    return versions | {"commit": _commit()}


def _commit() -> str:
    """The last commit, and whether sources or tools have changed since; unknown where there is no git."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "src", "tools")
        return git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def today() -> str:
    """The day, by Greenwich."""
    return datetime.now(timezone.utc).date().isoformat()


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of an earlier run, by name; none if there was none."""
    if not path.exists():
        return {}
    return {row["name"]: Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))}


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write the rows as JSON, and beside it as a table."""
    atomic_write(path, json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    atomic_write(path.with_suffix(".md"), table(rows))


def _kinds(row: Row) -> str:
    return f" ({', '.join(f'{count} {kind}' for kind, count in row.kinds.items())})" if row.kinds else ""


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| fault | must | tries | passed | failed | seconds | date |", "|---|---|--:|--:|--:|--:|---|"]
    lines += [
        f"| {row.title}{_kinds(row)} | {row.must} | {row.tries} | {row.passed} | {row.failed} "
        f"| {row.seconds:.0f} | {row.date} |"
        for row in rows
    ]
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(row.command for row in rows))
    known = {json.dumps(row.versions): row.versions for row in rows}
    versions = "; ".join(", ".join(f"{name} {number}" for name, number in one.items()) for one in known.values())
    return "\n".join([*lines, "", f"Written by {commands}, with {versions}.", ""])
