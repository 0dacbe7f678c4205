"""Results that are never computed twice."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock

from cagat.errors import CagatError
from cagat.files import disk_errors, read_bounded

_LARGEST_BYTES = 2**29  # A thousand records with the losses of ten thousand epochs each.


class Records:
    """Results by what was asked for, one line of JSON each, which several processes may add to.

    Each is on the disk before the next is begun. A line that a kill cut off is ignored, and its work done again.

    Args:
        path: The file; the first record creates it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, dict[str, Any]] = {}
        self._read = 0
        self._lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
        self.refresh()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Everything on record: `asked` and `found`."""
        return iter(self._known.values())

    def get(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was found, if this was asked before."""
        record = self._known.get(digest(asked))
        return None if record is None else record["found"]

    def add(self, asked: Mapping[str, Any], found: dict[str, Any]) -> None:
        """Keep what was found."""
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self.refresh()
                with self.path.open("ab") as stream:
                    if stream.tell() > self._read:  # A kill cut the last line off.
                        stream.truncate(self._read)
                    stream.write((json.dumps({"asked": dict(asked), "found": found}) + "\n").encode())
                    stream.flush()
                    os.fsync(stream.fileno())
                self.refresh()

    def refresh(self) -> None:
        """Read what other processes added.

        Raises:
            CagatError: The file cannot be read, or holds something else.
        """
        if not self.path.exists() or 0 < self._read == self.path.stat().st_size:
            return
        try:
            content = read_bounded(self.path, _LARGEST_BYTES)[self._read :]
        except OSError as error:
            raise CagatError(
                f"{self.path}: cannot be read ({error.strerror}). Move it away, or choose another directory."
            ) from error
        finished = content[: content.rfind(b"\n") + 1]
        line = b""
        try:
            for line in finished.splitlines():
                record = json.loads(line)
                asked, found = {**record["asked"]}, {**record["found"]}
                self._known[digest(asked)] = {"asked": asked, "found": found}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CagatError(
                f"{self.path}: {line[:60]!r} is no record. Remove the line; its work is done again."
            ) from error
        self._read += len(finished)


def digest(asked: Mapping[str, Any]) -> str:
    """What tells one question from another, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()
