"""Seals of zip archives: a digest of the whole archive, in the archive itself.

An archive ends in the length of a comment, two bytes. The digest is that comment, so that seal and content cannot part,
and whoever reads zip archives reads sealed ones, too. A change anywhere is noticed, also where zip's own checksums do
not look: in names, times and sizes.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO

_LENGTH_BYTES = 2
_DIGEST_BYTES = 64
_TAIL_BYTES = _LENGTH_BYTES + _DIGEST_BYTES
_END_RECORD, _END_RECORD_BYTES = b"PK\5\6", 22
_BLOCK = 2**20
_TAIL = re.compile(rb"\x40\0[0-9a-f]{64}")


def sealed(archive: bytes) -> bytes:
    """The archive with its seal."""
    digest = hashlib.sha256(archive).hexdigest().encode()
    return archive[:-_LENGTH_BYTES] + len(digest).to_bytes(_LENGTH_BYTES, "little") + digest


def opened(content: bytes) -> bytes | None:
    """The archive without its seal; nothing if the seal does not fit."""
    archive = content[:-_TAIL_BYTES] + bytes(_LENGTH_BYTES)
    return archive if _fits(hashlib.sha256(archive).hexdigest(), content[-_TAIL_BYTES:]) else None


def ends_in_a_seal(stream: BinaryIO) -> bool:
    """Whether the end of a file has the form of a seal, which says soon of most files that they have none."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    return _TAIL.fullmatch(stream.read(_TAIL_BYTES)) is not None


def is_broken(path: Path) -> bool:
    """Whether a file is no longer what was sealed; an archive that never had a comment, and so no seal, is not."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(-min(size, _END_RECORD_BYTES), os.SEEK_END)
        end = stream.read()
        if end.startswith(_END_RECORD) and end.endswith(bytes(_LENGTH_BYTES)):
            return False
        digest, left = hashlib.sha256(), max(0, size - _TAIL_BYTES)
        stream.seek(0)
        while block := stream.read(min(left, _BLOCK)):
            digest.update(block)
            left -= len(block)
        digest.update(bytes(_LENGTH_BYTES))
        return not _fits(digest.hexdigest(), stream.read())


def _fits(digest: str, tail: bytes) -> bool:
    return tail == _DIGEST_BYTES.to_bytes(_LENGTH_BYTES, "little") + digest.encode()
