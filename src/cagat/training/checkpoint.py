"""Checkpoints: what a run needs to go on, sealed against damage."""

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import torch

from cagat.errors import CagatError
from cagat.whole_file import disk_errors, put_whole
from cagat.zip_seal import opened, sealed


class DamagedFileError(CagatError, ValueError):
    """A file of a run is not what was written."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all, and keep the one before it as `previous(path)`."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = sealed(buffer.getvalue())  # What torch.save writes is a zip archive.
    # A damaged one does not take the place of the good one before it.
    if path.exists() and opened(path.read_bytes()) is not None:
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
    archive = opened(content)
    if archive is None:
        raise DamagedFileError(f"{path}: is damaged or cut short, its digest does not fit.")
    try:
        state: dict[str, Any] = torch.load(io.BytesIO(archive), map_location="cpu", weights_only=True)
    except Exception as error:  # Whatever a hostile file with the right seal makes torch raise; nothing of it runs.
        raise DamagedFileError(f"{path}: is no checkpoint of cagat.") from error
    return state


def previous(path: Path) -> Path:
    """Where the checkpoint before the last is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


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
