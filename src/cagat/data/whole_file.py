"""Write a file whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cagat.errors import DatasetError


def written_whole(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Call `write` with a temporary file beside `path`, and move it there when, and only when, all went well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
