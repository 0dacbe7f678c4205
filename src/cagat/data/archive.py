"""Read and write the arrays of an `.npz` without executing anything and without trusting its sizes."""

import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.data.memory import require_memory, require_plausible
from cagat.errors import DatasetError
from cagat.files import atomic_write
from cagat.zip_seal import is_broken, sealed

_LONGEST_HEADER = 10_000
# NumPy's reader and writer of .npy, whose types older versions of NumPy do not tell, or tell wrongly.
npy: Any = np.lib.format


def read_arrays(path: Path, wanted: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Read those of the `wanted` arrays that the archive holds; any other member is never even unpacked.

    Raises:
        DatasetError: The file is no archive of arrays, is not what was sealed, a wanted array holds Python objects
            (which only unpickling could restore, and unpickling executes code), or the arrays would not fit in memory.
    """
    try:
        if is_broken(path):
            raise DatasetError(f"{path}: is damaged or cut short, its digest does not fit. Copy or write it again.")
        with zipfile.ZipFile(path) as archive:
            members = _members(path, archive, set(wanted))
            return {key: _read_member(path, archive, member) for key, member in members.items()}
    except DatasetError:
        raise
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file. Check the path.") from None
    except Exception as error:  # Whatever a broken or hostile file makes the libraries raise.
        raise DatasetError(f"{path}: not a readable .npz archive ({error}). Copy or download it again.") from error


def _members(path: Path, archive: zipfile.ZipFile, wanted: set[str]) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        key = member.filename.removesuffix(".npy")
        if key in wanted and key in members:
            raise DatasetError(f"{path}: the array {key!r} is there twice. Write the file again.")
        if key in wanted:
            members[key] = member
    size = sum(member.file_size for member in members.values())
    require_plausible(f"{path}: its arrays", size, path.stat().st_size)
    require_memory(f"{path}: its arrays", size, "If the file is to be trusted, use a machine with more memory.")
    return members


def _read_member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        return _read_array(f"{path}, array {member.filename!r}", stream, member.file_size)


def _read_array(what: str, stream: Any, size: int) -> NDArray[Any]:
    version = npy.read_magic(stream)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise DatasetError(f"{what}: .npy version {version} is not known. Save it again with numpy.savez.")
    shape, fortran_order, dtype = read_header(stream, max_header_size=_LONGEST_HEADER)
    if dtype.hasobject or dtype.kind not in "biufSU":
        raise DatasetError(
            f"{what}: has type {dtype}, but only numbers and texts are read, because unpickling objects would execute "
            "code from the file. Save the array with a plain type."
        )
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise DatasetError(f"{what}: says it has shape {shape} and type {dtype}, but holds only {size} bytes.")
    content = stream.read(math.prod(shape) * dtype.itemsize + 1)
    if len(content) != math.prod(shape) * dtype.itemsize:
        raise DatasetError(f"{what}: shape {shape} and type {dtype} do not fit the {len(content)} bytes it holds.")
    array: NDArray[Any] = np.frombuffer(content, dtype=dtype).reshape(shape, order="F" if fortran_order else "C")
    return array


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], *, seal: bool = False) -> None:
    """Write an `.npz` whose bytes depend on nothing but the arrays: no times, no compression, keys in order.

    Args:
        path: The file.
        arrays: The arrays by key.
        seal: Whether to put a digest of the whole file into it, by which any damage is noticed.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for key in sorted(arrays):
            buffer = io.BytesIO()
            npy.write_array(buffer, np.ascontiguousarray(arrays[key]), version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16
            archive.writestr(member, buffer.getvalue())
    atomic_write(path, sealed(content.getvalue()) if seal else content.getvalue())
