"""What is compiled is kept on disk, for all processes, until something that it calls changes."""

import shutil
import sys
import threading
from pathlib import Path

import filelock
import numba
import numpy as np
import pytest
import torch

from cagat import CaGATConv
from cagat.diffusion import fused
from cagat.kernels import compiled as module
from cagat.kernels.compiled import compiled, compiled_for_c, source_hash


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Where machine code is kept during a test."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    return tmp_path / "kept"


def write(number: int) -> None:
    """Have both kinds of compiled code write a constant."""

    def for_c(address):
        numba.carray(address, 1, numba.int64)[0] = number

    def loop(out):
        out[0] = number

    written = np.zeros(2, dtype=np.int64)
    compiled_for_c(for_c)(written.ctypes.data)
    compiled(loop)(written[1:])
    assert written.tolist() == [number, number]


def files(kept: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")}


def test_code_is_kept_until_something_changes(kept, monkeypatch):
    write(1)
    first = files(kept)
    assert len(first) == 4  # An index and the code, of each kind.
    write(1)
    assert files(kept) == first
    # numba would number the code for both constants within one index, and processes that write one at the same time
    # would take each other's.
    write(2)
    second = files(kept)
    assert len(second) == 8
    monkeypatch.setattr(module, "source_hash", lambda *package: "another")
    write(1)
    assert len(files(kept)) == 12
    assert files(kept).items() > second.items() > first.items()


def test_a_change_in_what_loops_call_is_noticed(tmp_path):
    package = tmp_path / "kernels"
    shutil.copytree(Path(module.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert source_hash(package) == source_hash()
    with (package / "simd.py").open("a") as stream:
        stream.write("# Another.")
    source_hash.cache_clear()
    assert source_hash(package) != source_hash()


def test_a_cache_directory_that_cannot_be_written_is_no_error(kept):
    kept.write_text("in the way")
    write(1)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on file sizes")
def test_a_disk_that_is_full_is_no_error(kept):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        write(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [name for name in files(kept) if name.endswith(".nbc")]


def test_broken_kept_code_is_no_error(kept):
    write(1)
    for index in kept.rglob("*.nbi"):
        index.write_bytes(b"")
    write(1)


def test_what_another_process_compiles_is_waited_for(kept):
    write(3)
    [lock] = kept.rglob("*.lock")
    done = threading.Event()
    with filelock.FileLock(lock):
        thread = threading.Thread(target=lambda: (write(3), done.set()))
        thread.start()
        assert not done.wait(0.5)
    assert done.wait(30)
    thread.join()


def test_code_that_is_loaded_gives_the_bits_that_it_gave_when_it_was_compiled(kept):
    torch.manual_seed(0)
    conv, x, edge_index = CaGATConv(4, 3), torch.randn(50, 4), torch.randint(0, 50, (2, 400))
    results = []
    for _ in range(2):
        for function in (fused.forward, fused.attend):
            function.cache_clear()
        with torch.no_grad():
            results.append(conv(x, edge_index))
        assert len([name for name in files(kept) if name.endswith(".nbc")]) == 2
    assert torch.equal(*results)
