"""Hidden representations as files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from torch import Tensor

from cagat.errors import ConfigError
from cagat.files import atomic_write
from cagat.training.predictions import write_table


@dataclass(frozen=True)
class Embeddings:
    """The hidden representation of all nodes of a graph.

    Attributes:
        nodes: The names of the nodes.
        vectors: Shape `(nodes, units)`.
    """

    nodes: list[str]
    vectors: Tensor

    @staticmethod
    def require_name(path: Path) -> None:
        """Raise unless the file's name ends in something that can be written."""
        if path.suffix not in (".npz", ".parquet"):
            raise ConfigError(f"{path}: the file must end in .npz or .parquet.")

    def write(self, path: Path) -> None:
        """Write the vectors, by the end of the file's name as NumPy's arrays or as Parquet."""
        self.require_name(path)
        vectors = self.vectors.cpu().numpy()
        if path.suffix == ".npz":
            names = np.array(self.nodes, dtype=np.str_)
            atomic_write(path, lambda stream: np.savez_compressed(stream, nodes=names, embedding=vectors))
            return
        columns = {f"unit_{number}": vectors[:, number] for number in range(vectors.shape[1])}
        write_table(pa.table({"node": self.nodes, **columns}), path)
