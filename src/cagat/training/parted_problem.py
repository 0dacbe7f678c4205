"""A graph in parts as a problem: each process holds its nodes, their labels and nothing of the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.converters import Names
from cagat.data.encoding import TableEncoder
from cagat.data.graph import SPLIT_NAMES
from cagat.data.loading import is_parted
from cagat.data.splits import Split
from cagat.distributed import World
from cagat.errors import ConfigError, DatasetError
from cagat.models import Labelled
from cagat.parts import OpenedParts, open_parts
from cagat.settings import TrainConfig
from cagat.training.evidence import Evidence
from cagat.training.predictions import Predictions, write_tables
from cagat.training.problem import (
    Judged,
    Problem,
    asks_for_split,
    class_weight,
    drawn_split,
    labels_per_class,
)

# Rows of a table that are sent at a time.
_BLOCK = 2**18


def load_problem(config: TrainConfig, world: World, encoder: TableEncoder | None = None) -> Problem:
    """Load the graph of a configuration: all of it, or what this process holds. All processes must call it."""
    if is_parted(config.dataset):
        return PartedProblem.open(config, world)
    return Problem.load(config, encoder)


def parted_data(parts: OpenedParts) -> Data:
    """What a process holds of a graph, with nodes numbered from 0."""
    about = parts.manifest
    return Data(
        x=parts.x(),
        y=parts.tensor("labels").long(),
        name=about.name,
        class_names=Names(about.class_names),
        feature_names=Names(about.feature_names),
        parts=parts,
    )


@dataclass(frozen=True)
class PartedProblem(Problem):
    """The nodes of this process, and the use of their labels.

    Attributes:
        counts: For train, val and test, how many nodes of each class all processes have together.
        found: In the first process, what it was told about the labelled nodes of all.
    """

    counts: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    found: dict[str, Any] | None = None

    @classmethod
    def open(cls, config: TrainConfig, world: World) -> "PartedProblem":
        """Open the parts of this process, and decide together what each label is for."""
        if config.parallel != "graph" and not config.out_of_core:
            raise ConfigError(
                f"{config.dataset}: the graph is in parts. Train with --parallel graph, under torchrun or alone, or "
                "with --out-of-core."
            )
        parts = open_parts(Path(config.dataset), world)
        about, graph = parts.manifest, parted_data(parts)
        for rank, digest in enumerate(world.all_of(about.digest())):
            if digest != about.digest():
                raise DatasetError(
                    f"{config.dataset}: rank {rank} has another partition than rank {world.rank}. Give all machines "
                    "the same one."
                )
        if about.has_split and not asks_for_split(config):
            codes = parts.tensor("split")
            _require_labels(config.dataset, codes, graph.y, parts)
        else:
            codes = _drawn_codes(config, graph, parts, world)
        split = Split(*(torch.nonzero(codes == code).flatten() for code in (1, 2, 3)))
        classes = len(about.class_names)
        counts = world.sum(torch.stack([torch.bincount(graph.y[nodes], minlength=classes) for nodes in split]))
        if not counts[0].any():
            raise DatasetError(f"{config.dataset}: the split has no train nodes. Name some, or ask for --labels.")
        weight = class_weight(_repeated(counts[0]), classes, config.class_weight)
        labels, val_labels = labels_per_class(config, about.has_split)
        return cls(graph, split, labels, val_labels, class_weight=weight, counts=counts)

    @property
    def parts(self) -> OpenedParts:
        """What this process has opened."""
        opened: OpenedParts = self.graph.parts
        return opened

    @property
    def num_nodes(self) -> int:
        """How many nodes all processes hold."""
        return self.parts.manifest.num_nodes

    @property
    def sizes(self) -> dict[str, int]:
        """How many nodes each part of the split has in all processes."""
        return dict(zip(SPLIT_NAMES, self.counts.sum(dim=1).tolist(), strict=True))

    @property
    def part_counts(self) -> Sequence[Tensor]:
        """How many nodes of each class each part of the split has in all processes."""
        return list(self.counts)

    @property
    def label_counts(self) -> Tensor:
        """How many nodes are labelled with each class in all processes."""
        return torch.tensor(self.parts.manifest.label_counts)

    def trained_on(self) -> Labelled:
        """See :meth:`Problem.trained_on`; the nodes are only counted."""
        classes = _repeated(self.counts[0])
        return Labelled(classes, classes)

    def fingerprint(self) -> str:
        """A digest of the partition and of how the split was made."""
        split = [list(self.sizes.values()), self.labels, self.val_labels, self.counts[:2].tolist()]
        return sha256(f"{self.parts.manifest.digest()} {split}".encode()).hexdigest()

    def gathered(self, logits: Tensor, *, with_test: bool) -> "PartedProblem":
        """See :meth:`Problem.gathered`; all processes must call it."""
        found = {name: self._to_first(name, logits) for name in ("val", "test")[: 1 + with_test]}
        predicted = torch.bincount(logits.argmax(dim=1), minlength=logits.size(1))
        shares = self.parts.world.sum(predicted) + 1
        return replace(self, found={**found, "shares": shares / shares.sum()})

    def _to_first(self, name: str, logits: Tensor) -> Judged | None:
        nodes, world = getattr(self.split, name), self.parts.world
        counts = world.all_of(len(nodes))
        rows = [world.to_first(rows, counts) for rows in (logits[nodes], self.graph.y[nodes])]
        return None if rows[0] is None or rows[1] is None else Judged(rows[0], rows[1])

    def judged(self, name: str, logits: Tensor) -> Judged:
        """See :meth:`Problem.judged`; of the nodes that :meth:`gathered` has gathered."""
        assert self.found is not None
        judged: Judged = self.found[name]
        return judged

    def predicted_shares(self, logits: Tensor) -> Tensor:
        """See :meth:`Problem.predicted_shares`."""
        assert self.found is not None
        shares: Tensor = self.found["shares"]
        return shares

    def write_predictions(self, path: Path, logits: Tensor, temperature: float, evidence: Evidence | None) -> None:
        """See :meth:`Problem.write_predictions`; the other processes :func:`hand_over` theirs at the same time."""
        codes = split_codes(self.split, len(logits))
        write_tables(path, predictions_of_all(self.parts, logits, codes, temperature))


def hand_over(problem: Problem, logits: Tensor | None, *, finished: bool) -> None:
    """What a process that writes no files does while the first one writes those of a run."""
    if isinstance(problem, PartedProblem):
        assert logits is not None
        problem.gathered(logits, with_test=finished)
        problem.write_predictions(Path(), logits, 1.0, None)


def predictions_of_all(parts: OpenedParts, logits: Tensor, codes: Tensor, temperature: float) -> Iterator[pa.Table]:
    """The predictions for all nodes, block by block; nothing comes in the other processes, which send theirs."""
    classes = parts.manifest.class_names
    names = ["", *SPLIT_NAMES]
    for nodes, rows in _blocks(parts, torch.cat([codes[:, None].to(logits.dtype), logits], dim=1)):
        split = [names[code] for code in rows[:, 0].int().tolist()]
        probabilities = (rows[:, 1:].double() / temperature).softmax(dim=1)
        yield Predictions(nodes, classes, probabilities, split).table()


def vectors_of_all(parts: OpenedParts, vectors: Tensor) -> Iterator[pa.Table]:
    """The embeddings of all nodes, likewise."""
    for nodes, rows in _blocks(parts, vectors):
        columns = {f"unit_{number}": rows[:, number].numpy() for number in range(rows.size(1))}
        yield pa.table({"node": nodes, **columns})


def _blocks(parts: OpenedParts, rows: Tensor) -> Iterator[tuple[list[str], Tensor]]:
    """Names and rows of all nodes, part by part, in the first process."""
    world = parts.world
    for rank, count in enumerate(parts.counts):
        for start in range(0, count, _BLOCK):
            mine = slice(start, min(start + _BLOCK, count)) if rank == world.rank else slice(0, 0)
            sent = _sent_by(rank, mine.stop - mine.start, world)
            text = [name.encode() for name in parts.names(mine.start, mine.stop)]
            lengths = world.to_first(torch.tensor(list(map(len, text)), dtype=torch.long), sent)
            content = torch.frombuffer(bytearray(b"".join(text)), dtype=torch.uint8) if text else torch.empty(0).byte()
            content_of_all = world.to_first(content, _sent_by(rank, len(content), world))
            values = world.to_first(rows[mine].contiguous(), sent)
            if lengths is not None and content_of_all is not None and values is not None:
                whole, ends = content_of_all.numpy().tobytes(), lengths.cumsum(0).tolist()
                yield [whole[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)], values


def _sent_by(rank: int, count: int, world: World) -> list[int]:
    told = world.all_of(count)
    return [told[rank] if number == rank else 0 for number in range(world.size)]


def _drawn_codes(config: TrainConfig, graph: Data, parts: OpenedParts, world: World) -> Tensor:
    """Which part each node is in: the first process draws the split that it would draw from the whole graph."""
    y = world.to_first(graph.y, parts.counts)
    nodes = world.to_first(parts.tensor("nodes"), parts.counts)
    codes = torch.empty(0, dtype=torch.int8)
    if y is not None and nodes is not None:
        whole = torch.empty_like(y)
        whole[nodes] = y
        codes = split_codes(drawn_split(config, whole, graph.class_names), len(y))[nodes]
    return world.from_first(codes, parts.counts)


def _require_labels(dataset: str, codes: Tensor, y: Tensor, parts: OpenedParts) -> None:
    unlabelled = torch.nonzero((codes > 0) & (y < 0)).flatten()
    if len(unlabelled):
        first = int(unlabelled[0])
        (node,) = parts.names(first, first + 1)
        raise DatasetError(
            f"{dataset}: the graph's split names node {node!r}, but it has no label ({len(unlabelled)} such nodes in "
            f"the parts of rank {parts.world.rank}). Give labels or take the nodes out of the split."
        )


def split_codes(split: Split, nodes: int) -> Tensor:
    """For each node 0, or 1 to 3 for the part of the split that it is in."""
    codes = torch.zeros(nodes, dtype=torch.int8)
    for code, chosen in enumerate(split, start=1):
        codes[chosen] = code
    return codes


def _repeated(counts: Tensor) -> Tensor:
    """Each class as often as it is counted."""
    return torch.repeat_interleave(torch.arange(len(counts)), counts)
