"""What a model says about each node."""

import logging
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.data.splits import Split
from cagat.errors import ConfigError
from cagat.files import atomic_write
from cagat.training.spreadsheet_texts import without_formulas

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Predictions:
    """Predicted classes of all nodes of a graph.

    Attributes:
        nodes: The names of the nodes.
        classes: The names of the classes.
        probabilities: Shape `(nodes, classes)`.
        parts: The part of each node: `train`, `val`, `test`, or nothing.
    """

    nodes: list[str]
    classes: list[str]
    probabilities: Tensor
    parts: list[str]

    @classmethod
    def from_logits(cls, logits: Tensor, graph: Data, classes: list[str], split: Split | None) -> "Predictions":
        """Of a model's logits; in double precision, so that probabilities sum to one."""
        parts = [""] * int(graph.num_nodes)
        for name in SPLIT_NAMES if split is not None else ():
            for node in getattr(split, name).tolist():
                parts[node] = name
        return cls(list(graph.node_names), list(classes), logits.detach().cpu().double().softmax(dim=1), parts)

    def table(self) -> pa.Table:
        """One row a node: `node`, `predicted`, `probability_CLASS` of each class, `split`."""
        best = self.probabilities.argmax(dim=1).tolist()
        columns = {"node": self.nodes, "predicted": [self.classes[number] for number in best]}
        shares = {
            f"probability_{name}": self.probabilities[:, number].numpy() for number, name in enumerate(self.classes)
        }
        return pa.table({**columns, **shares, "split": self.parts})

    def write(self, path: Path) -> None:
        """Write the table as CSV, or as Parquet if the name ends so."""
        write_table(self.table(), path)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as CSV or Parquet, by the end of the file's name.

    In a CSV, texts that a spreadsheet would compute get an apostrophe before them, and that is said; a Parquet file,
    which no spreadsheet opens by itself, keeps them as they are.
    """
    require_table_name(path)
    if path.suffix == ".parquet":
        atomic_write(path, lambda stream: pyarrow.parquet.write_table(table, stream))
        return
    plain, changed = without_formulas(table)
    if changed:
        _logger.warning(
            "%s: %d names begin as formulas of a spreadsheet do, and got an apostrophe before them. Write a .parquet "
            "file to have them as they are.", path, changed,
        )  # fmt: skip
    atomic_write(path, lambda stream: pyarrow.csv.write_csv(plain, stream))


def require_table_name(path: Path) -> None:
    """Raise unless the file's name ends in something that can be written."""
    if path.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"{path}: the file must end in .csv or .parquet.")
