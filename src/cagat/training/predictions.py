"""What a trained model says about each node, and files of that."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.data.splits import Split
from cagat.errors import ConfigError
from cagat.files import atomic_write
from cagat.training.evidence import Evidence

_logger = logging.getLogger(__name__)

TABLE_FILES, VECTOR_FILES = (".csv", ".parquet"), (".npz", ".parquet")

# What spreadsheets compute begins with one of these; a plain number, which may begin with a sign, is only a number.
_FORMULA = r"^[=+\-@\t\r\n|%]"
_NUMBER = r"^[+\-]?[0-9]+(\.[0-9]+)?([eE][+\-]?[0-9]+)?$"


@dataclass(frozen=True)
class Predictions:
    """Predicted classes of all nodes of a graph."""

    nodes: list[str]
    classes: list[str]
    probabilities: Tensor
    subsets: list[str]
    evidence: Evidence | None = None

    @classmethod
    def from_logits(
        cls,
        logits: Tensor,
        graph: Data,
        classes: list[str],
        split: Split | None,
        temperature: float = 1.0,
        evidence: Evidence | None = None,
    ) -> "Predictions":
        """Of a model's logits; in double precision, so that probabilities sum to one.

        Args:
            logits: The logits of all nodes.
            graph: Their graph.
            classes: What the classes are called.
            split: The subsets that nodes are in, if they are in any.
            temperature: What the logits are divided by, so that probabilities are as large as they are right.
            evidence: The labelled nodes that each prediction rests on, if they are known.
        """
        subsets = [""] * int(graph.num_nodes)
        for name in SPLIT_NAMES if split is not None else ():
            for node in getattr(split, name).tolist():
                subsets[node] = name
        probabilities = (logits.detach().cpu().double() / temperature).softmax(dim=1)
        return cls(list(graph.node_names), list(classes), probabilities, subsets, evidence)

    def table(self) -> pa.Table:
        """One row per node: node, predicted, probability_CLASS of each class, split, confidence, because."""
        confidence, best = self.probabilities.max(dim=1)
        columns = {"node": self.nodes, "predicted": [self.classes[number] for number in best.tolist()]}
        shares = {
            f"probability_{name}": self.probabilities[:, number].numpy() for number, name in enumerate(self.classes)
        }
        because = [""] * len(self.nodes) if self.evidence is None else self.evidence.texts(self.nodes)
        last = {"split": self.subsets, "confidence": confidence.numpy(), "because": because}
        return pa.table({**columns, **shares, **last})

    def write(self, path: Path) -> None:
        """Write the table as CSV, or as Parquet if the name ends so."""
        write_table(self.table(), path)


@dataclass(frozen=True)
class Embeddings:
    """The hidden representation of all nodes of a graph."""

    nodes: list[str]
    vectors: Tensor

    def write(self, path: Path) -> None:
        """Write the vectors, by the end of the file's name as NumPy's arrays or as Parquet."""
        require_suffix(path, VECTOR_FILES)
        vectors = self.vectors.cpu().numpy()
        if path.suffix == ".npz":
            names = np.array(self.nodes, dtype=np.str_)
            atomic_write(path, lambda stream: np.savez_compressed(stream, nodes=names, embedding=vectors))
            return
        columns = {f"unit_{number}": vectors[:, number] for number in range(vectors.shape[1])}
        write_table(pa.table({"node": self.nodes, **columns}), path)


def require_suffix(path: Path, allowed: tuple[str, ...]) -> None:
    """Raise unless the file's name ends in something that can be written."""
    if path.suffix not in allowed:
        raise ConfigError(f"{path}: the file must end in {' or '.join(allowed)}.")


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as CSV or Parquet, by the end of the file's name.

    In a CSV, texts that a spreadsheet would compute get an apostrophe before them, with a warning; a Parquet file,
    which no spreadsheet opens by itself, keeps them as they are.
    """
    require_suffix(path, TABLE_FILES)
    if path.suffix == ".parquet":
        atomic_write(path, lambda stream: pyarrow.parquet.write_table(table, stream))
        return
    plain, changed = without_formulas(table)
    if changed:
        told = f"{path}: {changed} names begin as formulas of a spreadsheet do, and got an apostrophe before them."
        _logger.warning("%s Write a .parquet file to have them as they are.", told)
    atomic_write(path, lambda stream: pyarrow.csv.write_csv(plain, stream))


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """As :func:`write_table`, of a table that comes in pieces; where no piece comes, no file is written."""
    pieces = iter(tables)
    first = next(pieces, None)
    if first is None:
        return
    require_suffix(path, TABLE_FILES)
    opened = pyarrow.parquet.ParquetWriter if path.suffix == ".parquet" else pyarrow.csv.CSVWriter

    # In a CSV, names of columns change as names of nodes do: they are those of classes.
    plain = (table if path.suffix == ".parquet" else without_formulas(table)[0] for table in chain([first], pieces))

    def write(stream: BinaryIO) -> None:
        start = next(plain)
        with opened(stream, start.schema) as writer:
            for table in chain([start], plain):
                writer.write_table(table)

    atomic_write(path, write)


def without_formulas(table: pa.Table) -> tuple[pa.Table, int]:
    """Put an apostrophe before each text that begins as a formula does, and count the texts.

    Names of nodes and classes come from anybody's files, and a CSV is opened by double click.
    """
    changed = 0
    for number, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        column: Any = table.column(number)
        risky = pc.and_(
            pc.match_substring_regex(column, _FORMULA), pc.invert(pc.match_substring_regex(column, _NUMBER))
        )
        if count := pc.sum(risky).as_py() or 0:
            marked = pc.binary_join_element_wise(pa.scalar("'"), column, "")
            table = table.set_column(number, field, pc.if_else(risky, marked, column))
            changed += count
    names = ["'" + name if re.match(_FORMULA, name) else name for name in table.column_names]
    return table.rename_columns(names), changed


def unguarded(text: str) -> str:
    """A text of a CSV of ours as it was before :func:`without_formulas`."""
    rest = text.removeprefix("'")
    return rest if rest != text and re.match(_FORMULA, rest) and not re.match(_NUMBER, rest) else text
