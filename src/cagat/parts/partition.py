"""Cutting a graph into parts on disk, so that a process can open its own and no other."""

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from cagat.data.loading import GRAPH_FILE
from cagat.data.validation import file_sha256
from cagat.distributed import metis_parts
from cagat.errors import DamagedFileError, DatasetError
from cagat.files import atomic_write, directory_lock
from cagat.parts.part_files import (
    PART_FILE,
    Arrays,
    Manifest,
    PartInfo,
    part_path,
    read_manifest,
    read_part,
    remove_half_parts,
    write_part,
)
from cagat.parts.stream import stream_parts
from cagat.parts.tables import Tables
from cagat.parts.whole_graph import Entries, WholeGraph

_logger = logging.getLogger(__name__)

Method = Literal["metis", "stream"]


class Numbering:
    """The numbers that nodes get when a graph is cut: part by part, and in a part in the order that they had.

    Args:
        part: The part of each node.
        parts: How many parts there are.
    """

    def __init__(self, part: NDArray[np.integer[Any]], parts: int) -> None:
        self.part = part
        self.nodes = np.argsort(part, kind="stable")
        self.bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=parts))])
        self.new = np.empty(len(part), dtype=np.int64)
        self.new[self.nodes] = np.arange(len(part))

    def nodes_of(self, number: int) -> NDArray[np.int64]:
        """The nodes of a part, by the numbers that they had."""
        return self.nodes[self.bounds[number] : self.bounds[number + 1]]


def assigned(graph: WholeGraph, parts: int, method: Method) -> NDArray[np.int32]:
    """The part of each node."""
    if method == "stream":
        return stream_parts(graph.rows, graph.rows_t, parts)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(graph.rows.ptr))
    edges = torch.from_numpy(np.stack([np.asarray(graph.rows.col, dtype=np.int64), rows]))
    return metis_parts(edges, graph.num_nodes, parts).numpy().astype(np.int32)


def part_of(graph: WholeGraph, numbering: Numbering, number: int) -> tuple[PartInfo, Arrays]:
    """All that a part holds."""
    nodes = numbering.nodes_of(number)
    start, stop = numbering.bounds[number : number + 2]
    taken = {"": graph.rows.take(nodes)}
    if graph.rows_t is not None:
        taken["_t"] = graph.rows_t.take(nodes)
    columns = {suffix: numbering.new[entries.col] for suffix, entries in taken.items()}
    apart = {suffix: (column < start) | (column >= stop) for suffix, column in columns.items()}
    halo = np.unique(np.concatenate([columns[suffix][apart[suffix]] for suffix in columns]))
    arrays: Arrays = {"nodes": nodes, "halo": halo, "labels": graph.labels[nodes].astype(np.int32)}
    for suffix, entries in taken.items():
        column = np.where(apart[suffix], len(nodes) + np.searchsorted(halo, columns[suffix]), columns[suffix] - start)
        row = entries.rows()
        order = np.argsort(row * (len(nodes) + len(halo)) + column)
        arrays[f"rowptr{suffix}"], arrays[f"col{suffix}"] = entries.ptr, _narrow(column[order])
        if entries.values is not None:
            arrays[f"weight{suffix}"] = entries.values[order]
        if not suffix:
            arrays["number"] = entries.numbers[order]
    arrays["sent"], arrays["sent_counts"] = _sent(taken, columns, apart, numbering)
    arrays["degree"] = graph.rows.row_sums(np.concatenate([nodes, numbering.nodes[halo]]))
    if graph.split_codes is not None:
        arrays["split"] = graph.split_codes[nodes].astype(np.int8)
    if graph.node_names is not None:
        names = [graph.node_names[node].encode() for node in nodes.tolist()]
        arrays["names"] = np.frombuffer(b"".join(names), dtype=np.uint8)
        arrays["name_ends"] = np.cumsum(list(map(len, names)), dtype=np.int64)
    arrays |= _features(graph, nodes)
    entries = taken[""]
    info = PartInfo(number, len(nodes), len(halo), len(entries.col), int(apart[""].sum()), {})
    return info, arrays


def _sent(
    taken: dict[str, Entries],
    columns: dict[str, NDArray[np.int64]],
    apart: dict[str, NDArray[np.bool_]],
    numbering: Numbering,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of our nodes the other parts need, and how many each: a node is in the halo of its neighbours' parts."""
    keys, parts = [], len(numbering.bounds) - 1
    for suffix, entries in taken.items():
        needing = np.searchsorted(numbering.bounds, columns[suffix][apart[suffix]], side="right") - 1
        keys.append(needing * (len(entries.ptr) - 1) + entries.rows()[apart[suffix]])
    key = np.unique(np.concatenate(keys))
    nodes = len(taken[""].ptr) - 1
    return key % nodes, np.bincount(key // nodes, minlength=parts)


def _features(graph: WholeGraph, nodes: NDArray[np.int64]) -> Arrays:
    if not sparse.issparse(graph.features):
        return {"x": np.asarray(graph.features[nodes], dtype=np.float32)}
    rows = graph.features[nodes]
    return {
        "x_rowptr": rows.indptr.astype(np.int64),
        "x_col": rows.indices.astype(np.int32),
        "x_value": rows.data.astype(np.float32),
        "x_number": graph.features.indptr[nodes].astype(np.int64),
    }


def _narrow(numbers: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
    """As 32 bits if these are enough."""
    return numbers.astype(np.int32) if numbers.max(initial=0) <= np.iinfo(np.int32).max else numbers


def partition(
    given: WholeGraph | Tables,
    out: Path,
    parts: int,
    method: Method,
    on_part: Callable[[int], None] = lambda number: None,
) -> Manifest:
    """Cut a graph and write it to a directory; goes on where the same partition was cut off.

    Args:
        given: The graph, or the tables of one that is put in order on disk first.
        out: The directory.
        parts: How many parts to make.
        method: How to find them.
        on_part: Called with the number of each part that is done.

    Raises:
        DatasetError: The directory holds something else.
        WriteError: The disk is full; what is whole stays, and the same call goes on.
    """
    digest = given.digest() if isinstance(given, Tables) else given.source
    with working_in(out, Plan(digest, parts, method)) as work:
        graph = given.graph(work, digest) if isinstance(given, Tables) else given
        path = work / "part.npy"
        if not path.exists():
            found = assigned(graph, parts, method)
            atomic_write(path, lambda stream: np.save(stream, found))
        numbering = Numbering(np.load(path), parts)
        digests = read_manifest(out).parts if (out / GRAPH_FILE).exists() else [None] * parts
        infos = []
        for number, expected in enumerate(digests):
            info = _finished(out, number, expected, numbering.nodes_of(number))
            if info is None:
                info = write_part(out, *part_of(graph, numbering, number))
            infos.append(info)
            on_part(number)
        manifest = Manifest(
            name=graph.name,
            source=graph.source,
            method=method,
            bounds=numbering.bounds.tolist(),
            entries=sum(info.entries for info in infos),
            cut_entries=sum(info.cut_entries for info in infos),
            features=int(graph.features.shape[1]),
            sparse_features=bool(sparse.issparse(graph.features)),
            directed=graph.rows_t is not None,
            has_split=graph.split_codes is not None,
            class_names=graph.class_names,
            feature_names=graph.feature_names,
            label_counts=np.bincount(graph.labels[graph.labels >= 0], minlength=len(graph.class_names)).tolist(),
            parts=[file_sha256(part_path(out, number) / PART_FILE) for number in range(parts)],
        )
        atomic_write(out / GRAPH_FILE, manifest.to_json())
    return manifest


@dataclass(frozen=True)
class Plan:
    """What a partition is made of: the same plan makes the same parts."""

    source: str
    parts: int
    method: str


@contextlib.contextmanager
def working_in(out: Path, plan: Plan) -> Iterator[Path]:
    """A directory for what is needed until all parts are done, and which a later call with the same plan finds."""
    work = out / ".work"
    others = [path.name for path in out.iterdir() if not _is_ours(path.name)] if out.is_dir() else []
    if others:
        raise DatasetError(f"{out}: holds other files, such as {others[0]!r}. Choose another directory.")
    with directory_lock(out):
        known = work / "plan.json"
        if (out / GRAPH_FILE).exists():
            manifest = read_manifest(out)
            found = Plan(manifest.source, manifest.num_parts, manifest.method)
        else:
            found = Plan(**json.loads(known.read_text(encoding="utf-8"))) if known.exists() else plan
        if found != plan:
            raise DatasetError(
                f"{out}: holds {found.parts} parts by {found.method} of "
                f"{'this' if found.source == plan.source else 'another'} graph. Choose another directory, or remove it."
            )
        remove_half_parts(out)
        atomic_write(known, json.dumps(asdict(plan)) + "\n")
        yield work
        shutil.rmtree(work)


def _is_ours(name: str) -> bool:
    return name in (".work", ".lock", GRAPH_FILE) or name.startswith(("part-", ".part-", f".{GRAPH_FILE}"))


def _finished(out: Path, number: int, expected: str | None, nodes: NDArray[np.int64]) -> PartInfo | None:
    """A part that is there and whole; one that is damaged, or of another partition, is removed."""
    path = part_path(out, number)
    if not path.exists():
        return None
    try:
        info, arrays = read_part(out, number, expected)
        if not np.array_equal(arrays.get("nodes", []), nodes):
            raise DamagedFileError(f"{path}: is a part of another partition. ")
        return info
    except DamagedFileError as error:
        _logger.warning("%s It is made anew.", str(error).partition(". ")[0] + ".")
        shutil.rmtree(path)
        return None
