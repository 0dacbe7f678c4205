"""What a source is."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes that have come and, if known, the bytes that will."""


class Source(Protocol):
    """A place that a graph can be fetched from."""

    @property
    def words(self) -> str:
        """The place, as it is named to the user."""

    def fetch(self, target: Path, progress: Progress) -> None:
        """Write the graph to the file `target`, checked and whole, or raise `DatasetError` and leave nothing behind."""
