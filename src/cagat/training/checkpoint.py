"""Checkpoints: what a run needs to go on, sealed against damage."""

import contextlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from cagat.errors import CagatError, DamagedFileError
from cagat.files import atomic_write, disk_errors, open_regular, size_of
from cagat.memory import require_memory
from cagat.training.checkpoint_program import check_program
from cagat.zip_seal import ends_in_a_seal, opened, sealed

# The file, the archive without its seal, the archive as checked, and what torch makes of it.
_MEMORY = 4


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint whole or not at all, and keep the one before it as `previous(path)`."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = sealed(buffer.getvalue())  # What torch.save writes is a zip archive.
    # A damaged one does not take the place of the good one before it.
    if _is_whole(path):
        with disk_errors(previous(path)):
            _keep(path, previous(path))
    atomic_write(path, content)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint; nothing in it can be executed.

    Raises:
        DamagedFileError: The file is not as it was written.
        OutOfMemoryError: It is too large.
    """
    # The seal is checked first, so that nothing damaged ever reaches the unpickler.
    archive = opened(_content(path))
    if archive is None:
        raise _damaged(path)
    try:
        checked = _as_checked(archive)
    except Exception as error:  # Whatever an archive or a program that is none makes Python raise.
        raise DamagedFileError(f"{path}: is no checkpoint of cagat ({error}).") from error
    try:
        state = torch.load(io.BytesIO(checked), map_location="cpu", weights_only=True)
    except Exception as error:  # Whatever a hostile file with the right seal makes torch raise; nothing of it runs.
        # What torch says is not told: it advises to read the file without care.
        raise DamagedFileError(f"{path}: is no checkpoint of cagat (it holds more than numbers and texts).") from error
    if not isinstance(state, dict):
        raise DamagedFileError(f"{path}: is no checkpoint of cagat (it holds a {type(state).__name__}).")
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


def _content(path: Path) -> bytes:
    try:
        with open_regular(path) as stream:
            if not ends_in_a_seal(stream):
                raise _damaged(path)
            size = size_of(stream)
            require_memory(_MEMORY * size, f"{path}: reading it", "Use a machine with more memory.")
            stream.seek(0)
            return stream.read(size)
    except OSError as error:
        raise DamagedFileError(f"{path}: cannot be read ({error.strerror}).") from error


def _is_whole(path: Path) -> bool:
    try:
        return opened(_content(path)) is not None
    except CagatError:
        return False


def _damaged(path: Path) -> DamagedFileError:
    return DamagedFileError(f"{path}: is damaged or cut short, its digest does not fit.")


def _as_checked(archive: bytes) -> bytes:
    """The archive written anew, so that torch reads just what is looked at here: no more than the file itself has.

    torch would unpack compressed members, of which a small file can hold gigabytes, but never writes any.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as checked:
        members = given.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("a member of the archive is compressed, which cagat never does")
        if sum(member.file_size for member in members) > len(archive):
            raise ValueError("the archive says that it holds more than the file")
        if len({member.filename for member in members}) != len(members):
            raise ValueError("a member of the archive is there twice")
        for member in members:
            content = given.read(member)
            # torch takes the program by this name, in small letters or capitals.
            if member.filename.lower().endswith("data.pkl"):
                check_program(content)
            checked.writestr(zipfile.ZipInfo(member.filename), content)
    return written.getvalue()
