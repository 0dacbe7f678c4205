"""Large tensors in mapped files."""

import gc
import os
from pathlib import Path

import psutil
import pytest
import torch

from cagat.distributed import disk_memory
from cagat.distributed.disk_memory import DiskMemory, LargeTensorsOnDisk
from cagat.files import WriteError


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_memory, "_SEGMENT_BYTES", 2**20)
    monkeypatch.setattr(disk_memory, "_SMALLEST", 2**12)
    return DiskMemory(tmp_path)


def test_results_of_operators_lie_there_with_their_gradients(memory):
    x, w = torch.randn(300, 16), torch.randn(16, 8, requires_grad=True)
    expected = torch.autograd.grad((x @ w).tanh().square().sum(), w)[0]
    with LargeTensorsOnDisk(memory):
        y = (x @ w).tanh()
        view = y[10:20]
        assert memory.holds(y)
        assert view.data_ptr() == y[10].data_ptr()
        assert memory.holds(y.sort(dim=0).values)
        assert memory.holds(torch.zeros(100, 100))
        assert not memory.holds(x[:200])  # A view of what was there before.
        assert not memory.holds(y.sum())
        y.add_(0)
        memory.release()
        (gradient,) = torch.autograd.grad((x @ w).tanh().square().sum(), w)
    assert not memory.holds(torch.zeros(100, 100))
    assert torch.equal(gradient, expected)


def test_places_are_used_again(memory):
    held = [memory.empty((1000,), torch.float32).fill_(number) for number in range(100)]
    size = memory.size
    assert size == 2**20
    del held[10:90]
    gc.collect()
    larger = memory.empty((70_000,), torch.float32).fill_(-1)
    assert memory.size == size
    assert larger.sum() == -70_000
    assert [int(one[-1]) for one in held] == [*range(10), *range(90, 100)]
    assert memory.empty((2**19,), torch.float32).numel() == 2**19  # Larger than a segment.
    assert memory.size == size + 2**21


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_released_memory_is_not_the_process_s(memory):
    x = memory.empty((2**22,), torch.float32).fill_(3)
    process = psutil.Process()
    before = process.memory_info().rss
    memory.release()
    assert process.memory_info().rss < before - 2**23
    assert x.sum() == 3 * 2**22


def test_a_full_disk(memory, monkeypatch):
    def full(file, start, size):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"scratch: cannot be written \(No space left on device\)\. Make room"):
        memory.empty((1000,), torch.float32)
