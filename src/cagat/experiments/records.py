"""Results that are never computed twice."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import filelock

from cagat.errors import CagatError
from cagat.files import disk_errors, open_regular, size_of

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
        record = {"asked": dict(asked), "found": found}
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._lock:
                self._remove_unfinished_line()
                with self.path.open("ab") as stream:
                    stream.write((json.dumps(record) + "\n").encode())
                    stream.flush()
                    os.fsync(stream.fileno())
        self._known[digest(asked)] = record

    def refresh(self) -> None:
        """Read what other processes added.

        Raises:
            CagatError: The file cannot be read, or holds something else.
        """
        if not self.path.exists():
            return
        with self._opened() as stream:
            stream.seek(self._read)
            content = stream.read(_LARGEST_BYTES)
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

    def _remove_unfinished_line(self) -> None:
        if not self.path.exists():
            return
        with self._opened() as stream:
            if (size := size_of(stream)) == 0:
                return
            stream.seek(size - 1)
            if stream.read(1) == b"\n":
                return
            stream.seek(0)
            finished = stream.read(size).rfind(b"\n") + 1
        os.truncate(self.path, finished)

    def _opened(self) -> BinaryIO:
        """The file, for reading: neither a device, which may have no end, nor larger than any file of records."""
        try:
            stream = open_regular(self.path)
        except OSError as error:
            raise CagatError(
                f"{self.path}: cannot be read ({error.strerror}). Move it away, or choose another directory."
            ) from error
        if size_of(stream) > _LARGEST_BYTES:
            stream.close()
            raise CagatError(
                f"{self.path}: is larger than {_LARGEST_BYTES} bytes, as no file of records is. Move it away, or "
                "choose another directory."
            )
        return stream


def digest(asked: Mapping[str, Any]) -> str:
    """What tells one question from another, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()
