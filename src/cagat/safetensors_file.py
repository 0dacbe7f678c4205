"""Arrays and JSON in one `.safetensors` file, under one checksum.

The format itself has no checksum, so that a changed bit would only be another number. Ours is the sha256 of the whole
file with zeros in its place, and stands first in the header's metadata. The rest of the metadata is one JSON text.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from cagat.errors import CagatError, DamagedFileError
from cagat.files import atomic_write, open_regular, size_of
from cagat.memory import require_memory

_LENGTH_BYTES = 8
# The names of half a million features; parsing takes forty times the memory of the text.
_LONGEST_HEADER = 2**23
_BLOCK = 2**20
_START = '{"__metadata__":{"sha256":"'
_ZEROS = b"0" * 64
# Older versions put the checksum of a graph under the name of the package.
_CHECKSUM = re.compile(rb'\{"__metadata__":\{"(?:sha256|cagat)":"([0-9a-f]{64})"')


def write_tensors(
    path: Path, tensors: Mapping[str, NDArray[Any]], metadata: dict[str, Any], previous: Path | None = None
) -> None:
    """Write arrays, and metadata that is JSON, by :func:`atomic_write`; the same content is the same bytes."""
    plain = safetensors.numpy.save({name: np.asarray(tensor, order="C") for name, tensor in tensors.items()})
    length = int.from_bytes(plain[:_LENGTH_BYTES], "little")
    listed = plain[_LENGTH_BYTES + 1 : _LENGTH_BYTES + length].decode().rstrip()
    text = f'{_START}{_ZEROS.decode()}","cagat":{json.dumps(json.dumps(metadata))}}}'
    header = f"{text}{',' if tensors else ''}{listed}".encode()
    header += b" " * (-len(header) % _LENGTH_BYTES)
    if len(header) > _LONGEST_HEADER:
        raise ValueError(f"{path}: names and metadata have {len(header)} bytes, at most {_LONGEST_HEADER} are possible")
    data = memoryview(plain)[_LENGTH_BYTES + length :]
    head = len(header).to_bytes(_LENGTH_BYTES, "little") + header
    digest = hashlib.sha256(head)
    digest.update(data)
    head = head.replace(_ZEROS, digest.hexdigest().encode(), 1)
    atomic_write(path, lambda stream: stream.writelines((head, data)), previous)


def read_tensors(path: Path, *, require_checksum: bool = True) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote."""
    try:
        metadata = _checked_metadata(path, require_checksum)
        return safetensors.numpy.load_file(path), metadata
    except CagatError:
        raise
    except OSError as error:
        raise DamagedFileError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except Exception as error:  # Whatever a file of another form makes the library and Python raise.
        raise DamagedFileError(f"{path}: is damaged, or not a readable .safetensors file ({error}).") from error


def is_intact(path: Path) -> bool:
    """Whether a file is there and has the checksum that it was written with."""
    try:
        read_tensors(path)
    except CagatError:
        return False
    return True


def _checked_metadata(path: Path, require_checksum: bool) -> dict[str, Any]:
    """Read a file up to its end, and give the metadata if the checksum matches."""
    with open_regular(path) as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        if not 0 < length <= min(_LONGEST_HEADER, size_of(stream)):
            raise ValueError(f"the header claims to have {length} bytes")
        header = stream.read(length)
        known = json.loads(header).get("__metadata__", {})
        require_memory(size_of(stream), f"{path}: reading it", "Use a machine with more memory.")
        found = _CHECKSUM.match(header)
        if found is None:
            if require_checksum or known.keys() - {"format"}:
                raise DamagedFileError(f"{path}: is damaged, or from another version or program: it has no checksum.")
            return {}
        digest = hashlib.sha256(length.to_bytes(_LENGTH_BYTES, "little"))
        digest.update(header[: found.start(1)] + _ZEROS + header[found.end(1) :])
        while block := stream.read(_BLOCK):
            digest.update(block)
        if digest.hexdigest() != found[1].decode():
            raise DamagedFileError(f"{path}: is damaged or cut short, its checksum does not match.")
    metadata = json.loads(known["cagat"]) if "sha256" in known else {}
    if not isinstance(metadata, dict):
        raise TypeError(f"the metadata is a {type(metadata).__name__}")
    return metadata
