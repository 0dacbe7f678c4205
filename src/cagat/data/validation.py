"""Checks of what comes from files and callers: arrays, names, checksums, and whether they fit into memory."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import cagat.memory
from cagat.errors import DatasetError

_CSR = {"data": np.float32, "indices": np.int32, "indptr": np.int64, "shape": np.int64}
_BOMB_BYTES = 2**29
_BOMB_RATIO = 100
_BLOCK = 2**20


def as_int64(what: str, given: Any, shape: tuple[int | None, ...]) -> NDArray[np.int64]:
    """A copy as int64, if it holds integers or nothing, and has the shape, where `None` stands for any length."""
    array = _as_array(what, given)
    known = tuple(got if wanted is None else wanted for wanted, got in zip(shape, array.shape, strict=False))
    if (array.dtype.kind not in "iu" and array.size) or array.ndim != len(shape) or array.shape != known:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise DatasetError(
            f"{what} must be integers of shape ({wanted}), but has type {array.dtype} and shape {array.shape}."
        )
    return array.astype(np.int64)


def as_float32(what: str, given: Any, dimensions: int = 1) -> NDArray[np.float32]:
    """A copy as float32, if it holds numbers; what is too large becomes infinite, which `RawGraph.check` refuses."""
    array = _as_array(what, given)
    if array.dtype.kind not in "biuf" or array.ndim != dimensions:
        raise DatasetError(
            f"{what} must be numbers in {dimensions} dimension{'s' if dimensions > 1 else ''}, "
            f"but has type {array.dtype} and shape {array.shape}."
        )
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _as_array(what: str, given: Any) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DatasetError(
            f"{what} must be an array of numbers, but is a {type(given).__name__} that is none ({error}). Give rows of "
            "equal length."
        ) from error


def csr_arrays(matrix: Any, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The four arrays of a CSR matrix, by their names with a prefix."""
    return {prefix + part: np.asarray(getattr(matrix, part), dtype=kind) for part, kind in _CSR.items()}


def as_csr(what: str, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Any:
    """The float32 CSR matrix of four arrays, if they fit together; without `data`, all entries are 1."""
    if missing := [prefix + part for part in _CSR if part != "data" and prefix + part not in arrays]:
        raise DatasetError(f"{what}: {', '.join(missing)} missing. Write the file again.")
    what = f"{what}: {prefix}"
    shape = tuple(as_int64(f"{what}shape", arrays[f"{prefix}shape"], (2,)).tolist())
    indices, indptr = (as_int64(what + part, arrays[prefix + part], (None,)) for part in ("indices", "indptr"))
    data = as_float32(f"{what}data", arrays.get(f"{prefix}data", np.ones(len(indices))))
    try:
        matrix = sparse.csr_matrix((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        if matrix.nnz != len(indices):
            raise ValueError(f"indptr ends at {matrix.nnz}")
    except ValueError as error:
        counts = f"{len(data)} entries, {len(indices)} indices and {len(indptr)} indptr"
        raise DatasetError(f"{what}shape {shape} does not fit {counts}: {error}. Write the file again.") from error
    return matrix


def check_range(what: str, numbers: NDArray[Any], least: int, most: int, allowed: str) -> None:
    """Raise :class:`DatasetError` with the worst number unless all are in the range."""
    if numbers.size and (numbers.min() < least or numbers.max() > most):
        worst = numbers.min() if numbers.min() < least else numbers.max()
        raise DatasetError(f"{what} {worst} is out of range: {allowed}.")


def as_names(what: str, given: Any) -> list[str]:
    """Names that somebody gave, as a list, if they are texts."""
    if isinstance(given, (str, dict)) or not isinstance(given, Iterable):
        raise DatasetError(f"{what} must be a list of texts, but is {given!r:.80}. Put the names into a list.")
    names = list(given)
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise DatasetError(f"{what} must be texts, but one is {wrong[0]!r:.80}. Convert them with str(name).")
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
