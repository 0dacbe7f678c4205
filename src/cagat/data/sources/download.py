"""Download one file over HTTPS: checked, bounded in size and time, whole or not at all."""

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO

from cagat.data.file_sha256 import check_sha256
from cagat.data.sources.base import Progress
from cagat.errors import DatasetError
from cagat.files import atomic_write

SILENCE_SECONDS = 5.0
"""How long a server may say nothing, when connecting and in the middle of a file."""
TOTAL_SECONDS = 600.0
MOST_BYTES = 64 * 2**20
_BLOCK = 2**16


def download(url: str, target: Path, sha256: str, progress: Progress) -> None:
    """Download `url` to `target`.

    Raises:
        DatasetError: The server cannot be reached or falls silent, or the sum is wrong. `target` is then untouched.
    """

    def write(stream: BinaryIO) -> None:
        digest, done, deadline = hashlib.sha256(), 0, time.monotonic() + TOTAL_SECONDS
        with urllib.request.urlopen(url, timeout=SILENCE_SECONDS) as response:  # noqa: S310  Our own table's addresses.
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            while block := response.read(_BLOCK):
                done += len(block)
                if done > MOST_BYTES or time.monotonic() > deadline:
                    raise DatasetError(f"{url}: stopped after {done} bytes, which is too much or took too long.")
                digest.update(block)
                stream.write(block)
                progress(target.name, done, total)
        check_sha256(f"{target.name} from {url}", digest.hexdigest(), sha256)

    try:
        atomic_write(target, write)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise DatasetError(f"{url}: {reason or type(error).__name__}") from error
