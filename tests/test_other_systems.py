"""What Windows and macOS do otherwise, played on this machine: there is none of them here."""

import ctypes
import os
import socket
import sys
from pathlib import Path, PureWindowsPath

import pytest

from cagat.data import loading
from cagat.experiments.workers import worker_context
from cagat.files import WriteError, atomic_write
from cagat.kernels import threads
from cagat.labelling import server
from cagat.training.compute import keep_freed_memory
from cagat.training.run_directory import RunDirectory


@pytest.fixture(params=["win32", "darwin"])
def elsewhere(request, monkeypatch) -> str:
    monkeypatch.setattr(sys, "platform", request.param)
    return request.param


@pytest.fixture
def windows(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")


def _opened_by_another_program(monkeypatch, times: int) -> list[float]:
    """Let Windows refuse to replace a file so many times; the pauses made meanwhile."""
    replace, refusals, pauses = os.replace, iter(range(times)), []

    def refuse(source, target):
        if next(refusals, None) is not None:
            raise PermissionError(13, "Access is denied", str(source), 5, str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


def test_a_file_that_another_program_has_open_is_replaced_a_little_later(windows, tmp_path, monkeypatch):
    pauses = _opened_by_another_program(monkeypatch, times=3)
    atomic_write(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert len(pauses) == 3


def test_a_file_that_stays_open_is_an_error_that_names_it(windows, tmp_path, monkeypatch):
    pauses = _opened_by_another_program(monkeypatch, times=100)
    with pytest.raises(WriteError, match=r"file: cannot be written \(Access is denied\)"):
        atomic_write(tmp_path / "file", "new")
    assert sum(pauses) < 5
    assert list(tmp_path.iterdir()) == []


def test_where_files_can_be_replaced_nobody_waits(tmp_path, monkeypatch):
    pauses = _opened_by_another_program(monkeypatch, times=1)
    with pytest.raises(WriteError, match="Access is denied"):
        atomic_write(tmp_path / "file", "new")
    assert pauses == []


def test_a_lock_that_cannot_be_removed_stays(tmp_path, monkeypatch):
    def refuse(path, missing_ok=False):
        raise PermissionError(13, "The process cannot access the file", str(path))

    with RunDirectory(tmp_path / "run").locked():  # Nothing comes of the run.
        monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_the_c_library_is_asked_for_nothing_that_it_lacks(elsewhere, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("no library may be loaded"))
    keep_freed_memory()


def test_another_c_library_than_glibc_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # As musl's, which has no mallopt.
    keep_freed_memory()


def test_torchs_threads_are_not_looked_for(elsewhere, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("no library may be loaded"))
    threads._parallel_region.cache_clear()
    try:
        assert threads.torch_threads() is None
    finally:
        threads._parallel_region.cache_clear()


def test_a_torch_without_openmp_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for library in (lambda name: object(), lambda name: (_ for _ in ()).throw(OSError("cannot be loaded"))):
        monkeypatch.setattr(ctypes, "CDLL", library)
        threads._parallel_region.cache_clear()
        try:
            assert threads.torch_threads() is None
        finally:
            threads._parallel_region.cache_clear()


def test_without_forks_threads_can_be_had(monkeypatch):
    monkeypatch.delattr(os, "register_at_fork")
    done = []
    threads.RowThreads().run(lambda start, stop: done.append((start, stop)), [0, 1], (), width=1, threads=1)
    assert done == [(0, 1)]


def test_workers_are_not_forked(elsewhere):
    assert worker_context().get_start_method() == "spawn"


def test_two_servers_do_not_share_a_port(windows, monkeypatch):
    class Socket:
        def __init__(self, *kind):
            self.options = []

        def setsockopt(self, *option):
            self.options.append(option)

        def bind(self, place):
            assert self.options == []
            raise OSError("in use")

        def close(self):
            pass

    monkeypatch.setattr(socket, "socket", Socket)
    with pytest.raises(server.ConfigError, match="cannot be had"):
        server.LabelServer(None, 80)


def test_a_drive_is_not_the_name_of_a_graph(monkeypatch):
    monkeypatch.setattr(loading, "Path", PureWindowsPath)
    assert loading.graph_name(r"C:\graphs\mine.npz") == "mine"
    assert not loading.is_name(r"C:\graphs\mine.npz")
