"""The repository that publishes Planetoid's eight files."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cagat.data.npz import write_npz
from cagat.data.planetoid import read_planetoid
from cagat.data.sources.base import Progress
from cagat.data.sources.download import download


@dataclass(frozen=True)
class HttpsPlanetoid:
    """Eight files below one address, of which an `.npz` is made."""

    name: str
    base_url: str
    sums: Mapping[str, str]

    @property
    def words(self) -> str:
        """The address and the names of the files."""
        return f"{self.base_url}/ind.{self.name}.*"

    def fetch(self, target: Path, progress: Progress) -> None:
        """Download the files and convert them; see :class:`cagat.data.sources.Source`."""
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            for file, sha256 in self.sums.items():
                download(f"{self.base_url}/{file}", Path(folder, file), sha256, progress)
            write_npz(target, read_planetoid(Path(folder), self.name))
