"""Results that are never computed twice."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cagat.errors import CagatError
from cagat.whole_file import disk_errors


class Records:
    """Results by what was asked for, one line of JSON each.

    Each is on the disk before the next is begun. A line that a kill cut off is forgotten, and its work done again.

    Args:
        path: The file; it is made with the first record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, dict[str, Any]] = {}
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            with disk_errors(path), path.open("r+b") as stream:
                stream.truncate(len(whole))
        number = 0
        try:
            for number, line in enumerate(whole.splitlines(), 1):  # noqa: B007
                record = json.loads(line)
                self._known[_digest(record["asked"])] = record["found"]
        except (ValueError, KeyError, TypeError) as error:
            raise CagatError(f"{path}: line {number} is no record. Remove it; its work is done again.") from error

    def __len__(self) -> int:
        return len(self._known)

    def get(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was found, if it was asked before."""
        return self._known.get(_digest(asked))

    def add(self, asked: Mapping[str, Any], found: dict[str, Any]) -> None:
        """Keep what was found."""
        line = json.dumps({"asked": dict(asked), "found": found}) + "\n"
        with disk_errors(self.path), self.path.open("ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())
        self._known[_digest(asked)] = found


def _digest(asked: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(asked), sort_keys=True).encode()).hexdigest()
