"""Seals of `.safetensors` files: a digest of the whole file, in its own head.

The format has no checksum, so that a changed bit would be another number. The digest is the only value of the head's
metadata, and is computed with zeros in its place.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

KEY = "cagat"
_DIGEST_BYTES = 64
_ZEROS = "0" * _DIGEST_BYTES
_LENGTH_BYTES = 8
_LONGEST_HEAD = 2**20
_BLOCK = 2**20

METADATA = {KEY: _ZEROS}
"""What a file that is to be sealed is written with."""


def sealed(content: bytes) -> bytes:
    """The file with its digest where the zeros were."""
    place = _place(content)
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[:place] + digest + content[place + _DIGEST_BYTES :]


def require_short_head(path: Path) -> None:
    """Raise :class:`ValueError` if the head is longer than that of any graph: to parse it could take all memory."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    if length > _LONGEST_HEAD:
        raise ValueError(f"header too large, it says that it has {length} bytes")


def is_broken(path: Path) -> bool:
    """Whether a file is no longer what was sealed; one that never had a seal is not."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        head = stream.read(min(length, _LONGEST_HEAD))
        known = _metadata(head)
        # Others write a format, and nothing else; a seal whose key was hit is neither that nor a seal.
        if known is None or known.keys() == {"format"}:
            return False
        digest = str(known.get(KEY, ""))
        place = head.find(digest.encode()) if len(digest) == _DIGEST_BYTES else -1
        if place < 0:
            return True
        found = hashlib.sha256(length.to_bytes(_LENGTH_BYTES, "little"))
        found.update(head[:place] + _ZEROS.encode() + head[place + _DIGEST_BYTES :])
        while block := stream.read(_BLOCK):
            found.update(block)
        return found.hexdigest() != digest


def _place(content: bytes) -> int:
    return content.index(f'"{KEY}":"{_ZEROS}"'.encode()) + len(f'"{KEY}":"')


def _metadata(head: bytes) -> dict[str, Any] | None:
    """What the head says beside the tensors; nothing if that is nothing, or no JSON, which the reader will refuse."""
    try:
        known = json.loads(head)["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return known if isinstance(known, dict) else None
