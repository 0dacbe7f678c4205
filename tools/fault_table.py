"""The table of docs/explanation/reliability.md: what came of each fault that `tools/faults.py` tried."""

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
    """What came of all tries of a fault, and of which kind they were, where there are few kinds."""

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


def today() -> str:
    """The date in UTC."""
    return datetime.now(timezone.utc).date().isoformat()


def facts() -> dict[str, str]:
    """The versions that a row was measured with, and the last commit, if there is git."""
    packages = ("cagat", "torch", "torch_geometric", "numba", "numpy")
    versions = {"python": platform.python_version(), **{package: version(package) for package in packages}}
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return versions | {"commit": commit}


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of an earlier run, by name; none if there was none."""
    if not path.exists():
        return {}
    return {row["name"]: Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))}


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write the rows as JSON."""
    atomic_write(path, json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| fault | must | tries | passed | failed | seconds | date |", "|---|---|--:|--:|--:|--:|---|"]
    for row in rows:
        kinds = f" ({', '.join(f'{count} {kind}' for kind, count in row.kinds.items())})" if row.kinds else ""
        numbers = f"{row.tries} | {row.passed} | {row.failed} | {row.seconds:.0f} | {row.date}"
        lines.append(f"| {row.title}{kinds} | {row.must} | {numbers} |")
    commands = ", ".join(f"`{command}`" for command in dict.fromkeys(row.command for row in rows))
    known = {json.dumps(row.versions): row.versions for row in rows}
    versions = "; ".join(", ".join(f"{name} {number}" for name, number in one.items()) for one in known.values())
    return "\n".join([*lines, "", f"Written by {commands}, with {versions}.", ""])
