"""Reading the record of a run."""

import tracemalloc

import pytest

from cagat.training.run_directory import RunDirectory, RunError


def test_very_many_empty_lines_take_no_memory(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.metrics.write_bytes(b"\n" * 2**24)
    tracemalloc.start()
    with pytest.raises(RunError, match=r"metrics\.jsonl: is damaged"):
        directory.history()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**27


def test_a_record_beyond_all_runs_is_not_read(tmp_path):
    directory = RunDirectory(tmp_path)
    with directory.metrics.open("wb") as stream:
        stream.truncate(2**28)  # A hole, which costs no disk.
    with pytest.raises(RunError, match=r"metrics\.jsonl: cannot be read \(it is larger than"):
        directory.history()
