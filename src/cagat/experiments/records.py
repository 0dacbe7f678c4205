"""Results that are never computed twice."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from cagat.errors import CagatError
from cagat.whole_file import disk_errors


class Records:
    """Results by what was asked for, one line of JSON each, which several processes may add to.

    Each is on the disk before the next is begun. A line that a kill cut off is forgotten, and its work done again.

    Args:
        path: The file; it is made with the first record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, dict[str, Any]] = {}
        self._read = 0
        self._lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
        if path.exists():
            with self._lock:
                self._repair()
            self.refresh()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Everything on record: `asked` and `found`."""
        return iter(self._known.values())

    def get(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was found, if it was asked before."""
        record = self._known.get(digest(asked))
        return None if record is None else record["found"]

    def add(self, asked: Mapping[str, Any], found: dict[str, Any]) -> None:
        """Keep what was found."""
        record = {"asked": dict(asked), "found": found}
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self._repair()
                with self.path.open("ab") as stream:
                    stream.write((json.dumps(record) + "\n").encode())
                    stream.flush()
                    os.fsync(stream.fileno())
        self._known[digest(asked)] = record

    def refresh(self) -> None:
        """Take note of what other processes added."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(self._read)
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        line = b""
        try:
            for line in whole.splitlines():
                record = json.loads(line)
                asked, found = record["asked"], record["found"]
                self._known[digest(asked)] = {"asked": {**asked}, "found": {**found}}
        except (ValueError, KeyError, TypeError) as error:
            raise CagatError(
                f"{self.path}: {line[:60]!r} is no record. Remove the line; its work is done again."
            ) from error
        self._read += len(whole)

    def _repair(self) -> None:
        """Cut off a line that has no end."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as stream:
            end = stream.seek(0, os.SEEK_END)
            if end == 0:
                return
            stream.seek(end - 1)
            if stream.read(1) == b"\n":
                return
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)


def digest(asked: Mapping[str, Any]) -> str:
    """What tells one question from another, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()
