"""A repository that publishes the `.npz` itself."""

from dataclasses import dataclass
from pathlib import Path

from cagat.data.sources.base import Progress
from cagat.data.sources.download import download


@dataclass(frozen=True)
class HttpsFile:
    """One file behind one address."""

    url: str
    sha256: str

    @property
    def words(self) -> str:
        """The address."""
        return self.url

    def fetch(self, target: Path, progress: Progress) -> None:
        """Download the file; see :class:`cagat.data.sources.Source`."""
        download(self.url, target, self.sha256, progress)
