"""A graph in parts on disk: one directory per part with plain `.npy` arrays, and a `graph.json` about them all.

    graph.json          what the graph is, where the node ranges of the parts begin, and which files the parts are
    part-00000/         the first part
        part.json       its sizes, and the sha256 of each of its arrays
        nodes.npy ...   its arrays, of which :data:`ARRAYS` tells what they hold

A part is renamed into place when it is whole, and `graph.json` is written last.
"""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from cagat.data.loading import GRAPH_FILE
from cagat.data.validation import file_sha256
from cagat.errors import DamagedFileError, DatasetError
from cagat.files import atomic_write, disk_errors, read_bounded

PART_FILE = "part.json"
FORMAT = 1
_LARGEST_JSON = 2**28  # The names of some million features.

ARRAYS = {
    "nodes": "the number that each node of the part had before the graph was cut, ascending",
    "rowptr": "where the row of each node begins in the arrays of entries: the edges into the node, and its loop",
    "col": "the column of each entry: a node of the part by its place, or behind these a node of the halo",
    "number": "the number that each entry has in the matrix of the whole graph, as it was before",
    "weight": "the weight of each entry, if edges have weights",
    "rowptr_t": "of a directed graph: as rowptr, for the edges that leave the nodes",
    "col_t": "likewise, as col",
    "weight_t": "likewise, as weight",
    "halo": "the neighbours in other parts, ascending, by their numbers in the graph that was cut",
    "sent": "the nodes that other parts have in their halo, by their places: part by part, ascending",
    "sent_counts": "how many of them each part needs",
    "degree": "the sum of the row of each node, and then of each node of the halo",
    "labels": "the class of each node, -1 for none",
    "split": "the graph's own split, if it has one: 0 for none, 1 train, 2 val, 3 test",
    "x": "dense features, one row per node",
    "x_rowptr": "sparse features: where the row of each node begins",
    "x_col": "sparse features: the column of each value",
    "x_value": "sparse features: the values",
    "x_number": "sparse features: the number that the first value of each row has in the whole matrix",
    "names": "the names of the nodes, if these are not their numbers: the bytes of all, one after the other",
    "name_ends": "where each name ends",
}
"""The arrays of a part, and what they hold; the map from node to part is the list of bounds in `graph.json`."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PartInfo:
    """What `part.json` says: the sizes of a part, and the sha256 of each of its arrays."""

    number: int
    nodes: int
    halo: int
    entries: int
    cut_entries: int
    files: dict[str, str]


@dataclass(frozen=True)
class Manifest:
    """What `graph.json` says.

    Attributes:
        bounds: Part p holds the nodes ``bounds[p]`` to ``bounds[p + 1] - 1`` of the graph that was cut.
        entries: The number of entries of A, loops among them.
        cut_entries: How many of them join nodes of different parts.
        parts: The sha256 of each `part.json`, and so of all that is in a part.
    """

    name: str
    source: str
    method: str
    bounds: list[int]
    entries: int
    cut_entries: int
    features: int
    sparse_features: bool
    directed: bool
    has_split: bool
    class_names: list[str]
    feature_names: list[str]
    label_counts: list[int]
    parts: list[str]
    format: int = FORMAT

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.bounds[-1]

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return len(self.parts)

    @property
    def cut(self) -> float:
        """The share of the edges that join nodes of different parts."""
        return self.cut_entries / max(1, self.entries - self.num_nodes)

    def digest(self) -> str:
        """The sha256 of the file, which all processes must have in common."""
        return hashlib.sha256(self.to_json()).hexdigest()

    def to_json(self) -> bytes:
        """The bytes of the file."""
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def part_path(directory: Path, number: int) -> Path:
    """The directory of a part."""
    return directory / f"part-{number:05}"


def read_manifest(directory: Path) -> Manifest:
    """Read `graph.json`."""
    path = directory / GRAPH_FILE
    try:
        manifest = TypeAdapter(Manifest).validate_json(read_bounded(path, _LARGEST_JSON), strict=True)
    except OSError as error:
        raise DatasetError(
            f"{path}: cannot be read ({error.strerror}). Cut a graph with: cagat data partition SOURCE {directory}"
        ) from error
    except (ValidationError, ValueError) as error:
        raise DamagedFileError(
            f"{path}: is damaged, or from another version of cagat. Copy it again, or remove the directory and cut the "
            f"graph again with: cagat data partition SOURCE {directory}"
        ) from error
    if manifest.format != FORMAT or len(manifest.bounds) != manifest.num_parts + 1:
        raise DamagedFileError(f"{path}: is from another version of cagat. Cut the graph again.")
    return manifest


def write_part(directory: Path, info: PartInfo, arrays: Mapping[str, NDArray[Any]]) -> PartInfo:
    """Write a part whole or not at all; the result knows the checksums of its arrays."""
    final = part_path(directory, info.number)
    with disk_errors(final):
        work = directory / f".{final.name}.{secrets.token_hex(4)}.part"
        work.mkdir()
        try:
            files = {}
            for name, array in arrays.items():
                path = work / f"{name}.npy"
                with path.open("wb") as stream:
                    np.save(stream, array, allow_pickle=False)
                    stream.flush()
                    os.fsync(stream.fileno())
                files[name] = file_sha256(path)
            info = PartInfo(**{**asdict(info), "files": files})
            atomic_write(work / PART_FILE, json.dumps(asdict(info), indent=1) + "\n")
            os.replace(work, final)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return info


def remove_half_parts(directory: Path) -> None:
    """Remove what a process left behind that was killed while it wrote a part."""
    for leftover in directory.glob(".part-*.part"):
        shutil.rmtree(leftover, ignore_errors=True)


def read_part_info(directory: Path, number: int, expected: str | None) -> PartInfo:
    """Read `part.json`, whose sha256 is the expected one if that is known."""
    path = part_path(directory, number) / PART_FILE
    if not path.parent.is_dir():
        raise DatasetError(
            f"{path.parent}: the part is missing. Copy it here, or cut the graph again with: cagat data partition"
        )
    try:
        content = read_bounded(path, _LARGEST_JSON)
        info = TypeAdapter(PartInfo).validate_json(content, strict=True)
    except (OSError, ValidationError, ValueError) as error:
        raise DamagedFileError(f"{path}: is missing or damaged. {_AGAIN}") from error
    if expected is not None and file_sha256(path) != expected:
        raise DamagedFileError(
            f"{path.parent}: is not the part that {directory / GRAPH_FILE} was written with, but one of another "
            f"partition, or changed. {_AGAIN}"
        )
    return info


_AGAIN = "Copy the part again, or remove its directory and run the same cagat data partition, which makes it anew."


def read_part(directory: Path, number: int, expected: str | None) -> tuple[PartInfo, Arrays]:
    """Open the arrays of a part, memory-mapped, after a look at all of their bytes."""
    info, folder, arrays = read_part_info(directory, number, expected), part_path(directory, number), Arrays()
    for name, digest in info.files.items():
        path = folder / f"{name}.npy"
        try:
            found = file_sha256(path)
            # Private to this process: torch takes no arrays that cannot be written to.
            arrays[name] = np.load(path, mmap_mode="c", allow_pickle=False) if found == digest else np.empty(0)
        except (OSError, ValueError, EOFError) as error:
            raise DamagedFileError(f"{path}: is missing or damaged. {_AGAIN}") from error
        if found != digest:
            raise DamagedFileError(f"{path}: is damaged or was changed, its checksum does not match. {_AGAIN}")
    return info, arrays
