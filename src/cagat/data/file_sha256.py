"""The sum that tells whether a file is the one that was meant."""

import hashlib
from pathlib import Path

from cagat.errors import DatasetError

_BLOCK = 2**20


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def check_sha256(what: str, actual: str, *expected: str, remedy: str = "remove it and fetch it again") -> None:
    """Raise :class:`DatasetError` unless the actual sum is one of the expected ones."""
    if actual not in expected:
        raise DatasetError(
            f"{what}: sha256 is {actual}, expected {' or '.join(expected)}. "
            f"The file was cut, changed or is another one: {remedy}."
        )
