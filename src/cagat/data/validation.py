"""Checks of what comes from files and callers: arrays, names, checksums, and whether they fit into memory."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import cagat.memory
from cagat.errors import DatasetError

_BOMB_BYTES = 2**29
_BOMB_RATIO = 100
_BLOCK = 2**20


def as_array(what: str, given: Any) -> NDArray[Any]:
    """Numbers that somebody gave as an array, if their rows have one length."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DatasetError(
            f"{what} must be an array of numbers, but is a {type(given).__name__} that is none ({error}). Give rows of "
            "equal length."
        ) from error


def as_int64(what: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> NDArray[np.int64]:
    """A copy as int64, if it holds integers and has the shape, where `None` stands for any length."""
    fits = array.ndim == len(shape) and all(
        wanted in (None, got) for wanted, got in zip(shape, array.shape, strict=True)
    )
    if array.dtype.kind not in "iu" or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise DatasetError(
            f"{what} must be integers of shape ({wanted}), but has type {array.dtype} and shape {array.shape}."
        )
    return array.astype(np.int64)


def as_float32(what: str, array: NDArray[Any], dimensions: int = 1) -> NDArray[np.float32]:
    """A copy as float32, if it holds numbers; what is too large becomes infinite, which `RawGraph.check` refuses."""
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise DatasetError(
            f"{what} must be numbers in {dimensions} dimension{'s' if dimensions > 1 else ''}, "
            f"but has type {array.dtype} and shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def as_csr(what: str, data: NDArray[Any] | None, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """A float32 CSR matrix, if its arrays fit together; without `data`, all entries are 1."""
    rows, columns = shape
    indices, indptr = as_int64(f"{what}: indices", indices, (None,)), as_int64(f"{what}: indptr", indptr, (None,))
    ends_fit = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if rows < 0 or columns < 0 or not ends_fit or (np.diff(indptr) < 0).any():
        raise DatasetError(f"{what}: indptr does not fit a matrix of shape {shape} with {len(indices)} entries.")
    if len(indices) and (indices.min() < 0 or indices.max() >= columns):
        worst = indices.min() if indices.min() < 0 else indices.max()
        raise DatasetError(f"{what}: indices holds {worst}, but columns are 0 to {columns - 1}.")
    values = np.ones(len(indices), np.float32) if data is None else as_float32(f"{what}: data", data)
    if values.shape != indices.shape:
        raise DatasetError(f"{what}: data has shape {values.shape}, but there are {len(indices)} entries.")
    return sparse.csr_matrix((values, indices, indptr), shape=shape)


def as_names(what: str, given: Any) -> list[str]:
    """Names that somebody gave, as a list, if they are texts."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DatasetError(f"{what} must be a list of texts, but is {given!r:.80}. Put the names into a list.")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise DatasetError(
                f"{what} must be texts, but one is {name!r:.80}. Convert them with [str(name) for name in {what}]."
            )
    return names


def file_sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def check_sha256(what: str, actual: str, *expected: str, remedy: str = "remove it and fetch it again") -> None:
    """Raise :class:`DatasetError` unless the actual checksum is one of the expected ones."""
    if actual not in expected:
        raise DatasetError(
            f"{what}: sha256 is {actual}, expected {' or '.join(expected)}. "
            f"The file was cut, changed or is another one: {remedy}."
        )


def require_plausible(what: str, needed: int, packed: int) -> None:
    """Raise :class:`DatasetError` if a small file unpacks to very much, as a zip bomb does."""
    if needed > max(_BOMB_BYTES, _BOMB_RATIO * packed):
        raise DatasetError(
            f"{what} would unpack to {needed} bytes, {needed // max(packed, 1)} times the size of the file, as a file "
            "does that is made to fill the memory. If you trust it, write it without compression."
        )


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Raise :class:`DatasetError` unless there is free memory for `needed` bytes and as many again to work with."""
    try:
        cagat.memory.require_memory(2 * needed, what, remedy)
    except cagat.memory.OutOfMemoryError as error:
        raise DatasetError(str(error)) from error
