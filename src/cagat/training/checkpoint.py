"""Checkpoints: what a run needs to go on, sealed against damage."""

import contextlib
import hashlib
import io
import os
import pickle
from pathlib import Path
from typing import Any

import torch

from cagat.errors import CagatError
from cagat.whole_file import disk_errors, put_whole

# torch.save writes a zip archive, which ends in the length of a comment, two bytes. The digest is that comment, so that
# seal and content cannot part, and torch.load still reads the file.
_LENGTH_BYTES = 2
_DIGEST_BYTES = 64


class DamagedFileError(CagatError, ValueError):
    """A file of a run is not what was written."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all, and keep the one before it as `previous(path)`."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = _sealed(buffer.getvalue())
    # A damaged one does not take the place of the good one before it.
    if path.exists() and _opened(path.read_bytes()) is not None:
        with disk_errors(previous(path)):
            _keep(path, previous(path))
    put_whole(path, content)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint; nothing in it can be executed.

    Raises:
        DamagedFileError: The file is not as it was written.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFileError(f"{path}: cannot be read ({error.strerror}).") from error
    # The seal is checked first, so that nothing damaged ever reaches the unpickler.
    opened = _opened(content)
    if opened is None:
        raise DamagedFileError(f"{path}: is damaged or cut short, its digest does not fit.")
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(opened), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise DamagedFileError(f"{path}: is no checkpoint of cagat.") from error
    return state


def previous(path: Path) -> Path:
    """Where the checkpoint before the last is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _sealed(content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[:-_LENGTH_BYTES] + len(digest).to_bytes(_LENGTH_BYTES, "little") + digest


def _opened(content: bytes) -> bytes | None:
    """The archive without its seal; nothing if the seal does not fit."""
    body, digest = content[: -_DIGEST_BYTES - _LENGTH_BYTES], content[-_DIGEST_BYTES:]
    archive = body + bytes(_LENGTH_BYTES)
    length = content[-_DIGEST_BYTES - _LENGTH_BYTES : -_DIGEST_BYTES]
    fits = hashlib.sha256(archive).hexdigest().encode() == digest and int.from_bytes(length, "little") == _DIGEST_BYTES
    return archive if fits else None


def _keep(path: Path, kept: Path) -> None:
    """Give the file a second name, so that there is no moment without a file of the first."""
    link = kept.with_name(f".{kept.name}.part")
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    try:
        os.link(path, link)
    except OSError:  # A file system without hard links.
        link.write_bytes(path.read_bytes())
    os.replace(link, kept)
