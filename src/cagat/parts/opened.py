"""What one process holds of a graph in parts: the parts that are its share, joined to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from cagat.data.converters import sparse_tensor
from cagat.distributed import Halo, PartedGraph, World
from cagat.errors import ConfigError
from cagat.kernels import CSRPattern
from cagat.kernels.csr_graph import MATRIX_OF
from cagat.nn import SparseFeatures
from cagat.parts.part_files import Arrays, Manifest, read_manifest, read_part


@dataclass(frozen=True)
class OpenedParts:
    """The parts of one process, as if they were one.

    Attributes:
        manifest: The whole graph in parts.
        world: The processes that share it; each has as many parts, in their order.
        arrays: Those of :data:`~cagat.parts.part_files.ARRAYS`, except that ``sent_counts`` is by process.
        received: How many nodes of the halo each process holds.
        counts: How many nodes each process holds.
    """

    manifest: Manifest
    world: World
    arrays: Arrays
    received: list[int]
    counts: list[int]

    @property
    def num_nodes(self) -> int:
        """The number of nodes that are here."""
        return len(self.arrays["nodes"])

    def tensor(self, name: str) -> Tensor:
        """An array as a tensor, which shares its memory."""
        return torch.from_numpy(self.arrays[name])

    def names(self, start: int, stop: int) -> list[str]:
        """The names of the nodes from one to another."""
        if "names" not in self.arrays:
            return list(map(str, self.arrays["nodes"][start:stop].tolist()))
        text, ends = self.arrays["names"], self.arrays["name_ends"]
        offsets = [int(ends[start - 1]) if start else 0, *ends[start:stop].tolist()]
        return [text[begin:end].tobytes().decode() for begin, end in pairwise(offsets)]

    def x(self) -> Tensor:
        """The features as they were given: dense, or a sparse CSR matrix."""
        if not self.manifest.sparse_features:
            return self.tensor("x")
        matrix = tuple(self.arrays[f"x_{name}"] for name in ("value", "col", "rowptr"))
        return sparse_tensor(sparse.csr_matrix(matrix, shape=(self.num_nodes, self.manifest.features)))

    def sparse(self, x: Tensor) -> SparseFeatures:
        """Sparse features, prepared; dropout draws the mask that it would draw in the whole graph."""
        rowptr = x.crow_indices()
        rows = torch.repeat_interleave(torch.arange(self.num_nodes), rowptr.diff())
        pattern = CSRPattern.from_sorted(rows, x.col_indices(), self.num_nodes, self.manifest.features)
        number = torch.arange(rows.numel()) + (self.tensor("x_number") - rowptr[:-1])[rows]
        return SparseFeatures(pattern, x.values(), number)

    def inputs(self, x: Tensor, model: Any) -> tuple[Tensor | SparseFeatures, PartedGraph, None]:
        """What a CaGAT takes: features, scaled as the model wants them, and the graph."""
        conv = model.convs[0]
        features = x if x.layout is torch.strided else self.sparse(x)
        return features, self.graph(conv.normalization, conv.att_src.dtype), None

    def graph(self, normalization: str, dtype: torch.dtype) -> PartedGraph:
        """The rows of A and of its transpose that are here."""
        width, degree = self.num_nodes + len(self.arrays["halo"]), self.tensor("degree")
        pattern, values = self._rows("", width)
        pattern_t, values_t = (pattern, values) if not self.manifest.directed else self._rows("_t", width)
        matrix = MATRIX_OF[normalization]
        weights = _transition(pattern, values, degree, matrix).to(dtype)
        weights_t = _transition(pattern_t, values_t, degree, matrix, transpose=True).to(dtype)
        perm, perm_t = pattern.perm_t.long(), pattern_t.perm_t.long()
        return PartedGraph(
            pattern=pattern,
            adjacency=values,
            entry=torch.empty(0, dtype=torch.long),
            num_given=0,
            has_added_loops=True,
            halo=self._halo(),
            own=self.tensor("nodes"),
            own_entries=self.tensor("number"),
            pattern_t=pattern_t,
            normalization=normalization,
            weights=(weights, weights[perm]),
            weights_t=(weights_t, weights_t[perm_t]),
            row_sums=degree.double(),
        )

    def _rows(self, suffix: str, width: int) -> tuple[CSRPattern, Tensor]:
        rowptr, col = self.tensor(f"rowptr{suffix}"), self.tensor(f"col{suffix}").long()
        row = torch.repeat_interleave(torch.arange(self.num_nodes), rowptr.diff())
        # All weights are one number where edges have none.
        values = self.tensor(f"weight{suffix}") if f"weight{suffix}" in self.arrays else torch.ones(1).double()
        return CSRPattern.from_sorted(row, col, self.num_nodes, width), values.expand(col.numel())

    def _halo(self) -> Halo:
        sent = self.arrays["sent_counts"].tolist()
        return Halo(self.world, self.tensor("halo"), self.received, self.tensor("sent"), sent)


def open_parts(directory: Path, world: World) -> OpenedParts:
    """Open the parts of this process, and no others."""
    manifest = read_manifest(directory)
    parts, size = manifest.num_parts, world.size
    if parts % size:
        fitting = [number for number in range(1, parts + 1) if parts % number == 0]
        raise ConfigError(
            f"{directory}: {size} processes cannot share {parts} parts equally. Start {_either(fitting)}, or cut the "
            "graph into other parts."
        )
    each = parts // size
    mine = range(world.rank * each, (world.rank + 1) * each)
    opened = [read_part(directory, number, manifest.parts[number])[1] for number in mine]
    bounds = np.asarray(manifest.bounds)
    owned = bounds[::each]
    arrays = _joined(opened, bounds[mine.start : mine.stop + 1]) if each > 1 else dict(opened[0])
    arrays["sent_counts"] = arrays["sent_counts"].reshape(size, each).sum(axis=1)
    if each > 1:
        arrays["sent"], arrays["sent_counts"] = _joined_sent(opened, bounds[mine.start : mine.stop + 1], world, each)
    arrays = {name: world.kept(array) for name, array in arrays.items()}
    received = np.diff(np.searchsorted(arrays["halo"], owned)).tolist()
    return OpenedParts(manifest, world, arrays, received, np.diff(owned).tolist())


def _joined(parts: Sequence[Arrays], bounds: NDArray[np.int64]) -> Arrays:
    """Adjacent parts as one: what was a neighbour in another of them is now a node of the same."""
    first, nodes = bounds[0], int(bounds[-1] - bounds[0])
    others = np.unique(np.concatenate([part["halo"] for part in parts]))
    halo = others[(others < first) | (others >= bounds[-1])]
    joined: Arrays = {"halo": halo}
    for name in parts[0].keys() - {"halo", "sent", "degree", "col", "col_t", "number", "weight", "weight_t"}:
        pieces = [part[name] for part in parts]
        if name.endswith(("rowptr", "rowptr_t", "ends")):
            ends = np.cumsum([0, *(piece[-1] if len(piece) else 0 for piece in pieces)])
            kept = [piece[name != "name_ends" and number > 0 :] for number, piece in enumerate(pieces)]
            joined[name] = np.concatenate([piece + end for piece, end in zip(kept, ends[:-1], strict=True)])
        elif name == "sent_counts":
            joined[name] = np.sum(pieces, axis=0)
        else:
            joined[name] = np.concatenate(pieces)
    for suffix in ("", "_t"):
        if f"col{suffix}" in parts[0]:
            _join_rows(joined, parts, bounds, suffix)
    own = np.concatenate([part["degree"][: len(part["nodes"])] for part in parts])
    of_halo = np.empty(len(halo))
    for part in parts:
        is_known = np.isin(part["halo"], halo)
        of_halo[np.searchsorted(halo, part["halo"][is_known])] = part["degree"][len(part["nodes"]) :][is_known]
    joined["degree"] = np.concatenate([own, of_halo])
    assert len(joined["nodes"]) == nodes
    return joined


def _join_rows(joined: Arrays, parts: Sequence[Arrays], bounds: NDArray[np.int64], suffix: str) -> None:
    """The entries of adjacent parts, with columns by their new places, ascending in each row."""
    halo, first, nodes = joined["halo"], bounds[0], int(bounds[-1] - bounds[0])
    columns = []
    for part, start in zip(parts, bounds, strict=False):
        known = np.concatenate([np.arange(start, start + len(part["nodes"])), part["halo"]])
        columns.append(known[part[f"col{suffix}"]])
    column = np.concatenate(columns)
    is_own = (column >= first) & (column < bounds[-1])
    column = np.where(is_own, column - first, nodes + np.searchsorted(halo, column))
    row = np.repeat(np.arange(nodes), np.diff(joined[f"rowptr{suffix}"]))
    order = np.argsort(row * (nodes + len(halo)) + column)
    joined[f"col{suffix}"] = column[order]
    for name in ("number", "weight") if not suffix else (f"weight{suffix}",):
        if name in parts[0]:
            joined[name] = np.concatenate([part[name] for part in parts])[order]


def _joined_sent(
    parts: Sequence[Arrays], bounds: NDArray[np.int64], world: World, each: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What is sent to each other process, and how much of it: each node once, whichever of its parts needs it."""
    nodes, keys = bounds[-1] - bounds[0], []
    for part, start in zip(parts, bounds, strict=False):
        process = np.repeat(np.arange(len(part["sent_counts"])), part["sent_counts"]) // each
        keys.append((process * nodes + part["sent"] + (start - bounds[0]))[process != world.rank])
    key = np.unique(np.concatenate(keys))
    return key % nodes, np.bincount(key // nodes, minlength=world.size)


def _transition(pattern: CSRPattern, values: Tensor, degree: Tensor, matrix: str, *, transpose: bool = False) -> Tensor:
    r"""The values of :math:`\bar{A}` at the entries of its rows, or of the rows of its transpose."""
    row, col = pattern.rows(), pattern.col.long()
    if matrix == "row":
        return values / degree[col if transpose else row]
    scale = degree.rsqrt()
    return values * scale[row] * scale[col]


def _either(numbers: list[int]) -> str:
    shown = list(map(str, numbers))
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
