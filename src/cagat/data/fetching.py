"""Find the file of a published graph on this machine, or fetch it."""

import logging
import os
import tempfile
from pathlib import Path

import platformdirs

from cagat.data.file_sha256 import check_sha256, file_sha256
from cagat.data.published import PUBLISHED, PublishedGraph
from cagat.data.sources import Progress, Source
from cagat.errors import DatasetError

_log = logging.getLogger(__name__)
EMBEDDED = Path(__file__).parent / "embedded"
"""The directory in the package that holds what comes with it."""


def data_directory(data_dir: Path | str | None = None) -> Path:
    """The directory for data sets: `data_dir`, else the variable `CAGAT_DATA`, else the user's cache directory."""
    chosen = data_dir or os.environ.get("CAGAT_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("cagat")) / "data"


def fetch(name: str, data_dir: Path | str | None = None, *, progress: Progress | None = None) -> Path:
    """Return the path of a published graph's file, after fetching it if it is not there.

    The data directory (:func:`data_directory`) is looked at first, then the package itself, then the sources of
    :mod:`cagat.data.published` in their order. A file is used only if its sha256 is the known one.

    Args:
        name: `cora`, `citeseer`, `cora_ml` or `pubmed`.
        data_dir: Where to look, and where to put what is fetched.
        progress: Called while bytes come in.

    Raises:
        DatasetError: A file has another sum, or no source gave it; every source that was tried is named.
    """
    if name not in PUBLISHED:
        raise DatasetError(f"There is nothing to fetch for {name!r}. Choose one of: {', '.join(PUBLISHED)}.")
    graph, folder = PUBLISHED[name], data_directory(data_dir)
    local = folder / f"{name}.npz"
    if local.is_file():
        check_sha256(str(local), file_sha256(local), *graph.sums)
        _log.info("%s: found in the local directory %s", name, folder)
        return local
    if graph.embedded:
        _log.info("%s: not in the local directory %s, so the one in the package is used", name, folder)
        packaged = EMBEDDED / f"{name}.npz"
        check_sha256(str(packaged), file_sha256(packaged), *graph.sums, remedy="install cagat again")
        return packaged
    return _fetch_remote(graph, local, progress or (lambda file, done, total: None))


def _fetch_remote(graph: PublishedGraph, local: Path, progress: Progress) -> Path:
    tried = [f"the local directory {local.parent}: no {local.name} there"]
    _log.info("%s: not in the local directory %s", graph.name, local.parent)
    for source in graph.sources:
        _log.warning("%s: fetching it from %s", graph.name, source.words)
        try:
            _fetch_checked(source, graph, local, progress)
        except DatasetError as error:
            _log.warning("%s: that failed (%s)", graph.name, error)
            tried.append(str(error))
            continue
        _log.info("%s: now in %s", graph.name, local)
        return local
    listed = "\n".join(f"  - {one}" for one in tried)
    raise DatasetError(
        f"{graph.name} could not be had. Tried, in this order:\n{listed}\n"
        f"To go on: put {local.name} (sha256 {' or '.join(graph.sums)}) into {local.parent}, or name the directory "
        "that holds it with --data-dir or the variable CAGAT_DATA, or try again with a network. "
        "The graphs cora, digits, karate and synthetic need none."
    )


def _fetch_checked(source: Source, graph: PublishedGraph, local: Path, progress: Progress) -> None:
    """Fetch into a directory of its own first, so that only a file with a known sum ever has the final name."""
    try:
        local.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{graph.name}.", dir=local.parent) as folder:
            fetched = Path(folder, local.name)
            source.fetch(fetched, progress)
            check_sha256(f"{local.name} from {source.words}", file_sha256(fetched), *graph.sums)
            os.replace(fetched, local)
    except OSError as error:
        raise DatasetError(f"{local}: cannot be written ({error.strerror}). Choose another directory.") from error
